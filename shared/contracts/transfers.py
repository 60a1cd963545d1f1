"""Transfers: a waiting job leaves its pool for another one that it names, under another id there.

See decision 0089.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import Field

from shared.contracts.base import Command, Event, JobId, Model, Name, command, event
from shared.contracts.identity import derive_job_id

TRANSFERS_FROM: Final = 1
"""First release whose pools know transfers: until `berth upgrade finish` none is made."""
MOST_POOLS: Final = 8
TRANSFERRED: Final = "transferred"
"""Reason of the end that a transferred job has in the pool that it leaves."""


class Transferred(Model):
    """Where a job comes from that was transferred, and what it takes along."""

    from_job_id: JobId = Field(description="its id in the pool before")
    from_pool: Name = Field(description="the pool before")
    first_job_id: JobId = Field(description="its id in its first pool")
    transfers: int = Field(ge=1, description="how often it was transferred")
    failures: int = Field(0, ge=0, description="attempts whose program failed")
    resumes: bool = Field(False, description="it goes on from a checkpoint of an earlier start")
    done_s: float = Field(
        0.0, ge=0, description="cluster s of work in the checkpoint of a job on virtual nodes"
    )


class TransferTarget(Model):
    """Where a job goes that is transferred, and what it takes along."""

    pool: Name = Field(description="the other pool")
    job_id: JobId = Field(description="its id in the other pool")
    failures: int = Field(0, ge=0, description="attempts whose program failed")
    resumes: bool = Field(False, description="it goes on from a checkpoint of an earlier start")
    done_s: float = Field(
        0.0, ge=0, description="cluster s of work in the checkpoint of a job on virtual nodes"
    )


@command
class TransferJob(Command):
    """Transfer a waiting job to another of its pools; it has no effect on one that has GPUs."""

    TYPE: ClassVar[str] = "job.transfer.v1"
    OWNER: ClassVar[str] = "admission"
    job_id: JobId = Field(description="the job")
    pool: Name = Field(description="the other pool")


@event
class JobTransferRequested(Event):
    """The transfer of an admitted job was requested; placement carries it out if the job waits."""

    TYPE: ClassVar[str] = "job.transfer-requested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: Name = Field(description="tenant that owns the job")
    to_pool: Name = Field(description="the other pool")


def transferred_job_id(tenant: str, pool: str, job_id: str) -> str:
    """Return the id that a job has in the pool to which it is transferred."""
    return derive_job_id(tenant, pool, f"transfer/{job_id}")
