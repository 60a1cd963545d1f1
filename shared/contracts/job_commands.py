"""Commands to admission: jobs, their cancellation, quotas, and submissions it cannot read."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import ABSENT, VERSION, Command, JobId, Model, Name, Text, command
from shared.contracts.job_spec import JobSpec


@command
class SubmitJob(Command):
    """Submit a job, or an array of jobs."""

    TYPE: ClassVar[str] = "job.submit.v1"
    OWNER: ClassVar[str] = "admission"
    job_id: JobId = Field(
        description="uuid5 of tenant, pool and idempotency key, set by the gateway"
    )
    tenant: Name = Field(description="set by the gateway from the sender's identity")
    pool: Name = Field(description="set by the gateway: as requested, or the tenant's default")
    idempotency_key: str = Field(
        min_length=1, max_length=128, description="key of the submission, chosen by the sender"
    )
    array_size: int = Field(
        1, ge=1, le=10000, description="number of jobs; index in BERTH_ARRAY_INDEX"
    )
    array_index: int | None = Field(
        None, ge=0, lt=10000, description="index of the job of an array that this one repeats"
    )
    spec: JobSpec = Field(description="specification of the job")
    by_operator: bool = Field(
        False,
        description="set by the gateway from the role of the sender: class, guarantee, grace and "
        "walltime of the tenant do not bind operators",
    )


@command
class CancelJob(Command):
    """Cancel a job, or every job of an array, in any phase; answered once it has ended."""

    TYPE: ClassVar[str] = "job.cancel.v1"
    OWNER: ClassVar[str] = "admission"
    job_id: JobId = Field(description="the job, or the array")
    tenant: Name | None = Field(None, description="tenant that must own it; absent for operators")
    reason: Text = Field("", description="free text for the audit")


class QuotaBounds(Model):
    """Bounds of a quota."""

    guaranteed_gpus: float = Field(
        ge=0, le=1e6, description="GPUs admitted regardless of other tenants"
    )
    borrow_gpus: float | None = Field(
        None, ge=0, le=1e6, description="borrowable GPUs beyond it; absent: unlimited"
    )
    spot_gpus: float | None = Field(
        None, ge=0, le=1e6, description="spot GPUs admitted; absent: the pool's bound decides"
    )
    if_version: str | None = Field(
        None,
        pattern=VERSION,
        description=f"version of the quota that this is based on, `{ABSENT}` for a new one; "
        "refused if it has another; absent: no condition",
    )


@command
class SetQuota(QuotaBounds, Command):
    """Set the quota of a tenant in one pool."""

    TYPE: ClassVar[str] = "quota.set.v1"
    OWNER: ClassVar[str] = "admission"
    tenant: Name = Field(description="the tenant")


@command
class RejectSubmission(Command):
    """Record that the gateway could not read a submission; admission appends InputRejected."""

    TYPE: ClassVar[str] = "submission.reject.v1"
    OWNER: ClassVar[str] = "admission"
    tenant: Name = Field(description="tenant of the topic")
    topic: str = Field(max_length=249, description="topic of the record")
    partition: int = Field(ge=0, lt=2**31, description="partition of the record")
    offset: int = Field(ge=0, lt=2**63, description="offset of the record")
    reason: str = Field(max_length=2048, description="field, value and violated rule")
    sha256: str = Field(max_length=64, description="sha256 of the bytes")
