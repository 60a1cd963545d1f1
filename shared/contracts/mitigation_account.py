"""The account of migrations off slow nodes: their cost, and their gain by estimate."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, event


@event
class MitigationCarriedOut(Event):
    """The job of an applied plan has left its slow nodes."""

    TYPE: ClassVar[str] = "mitigation.carried-out.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "plan_id"
    plan_id: str = Field(description="the plan")
    fault_id: str = Field(description="the first of the faults that it helps")
    job_id: str = Field(description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt that stops")
    slowdown: float = Field(ge=0, description="of the gang, 0.25 for 1.25 times")
    elapsed_s: float = Field(ge=0, description="since its first open fault, cluster s")
    lost_work_s: float = Field(ge=0, description="work that is done again, cluster s")


@event
class MitigationMeasured(Event):
    """The job runs again: the cost of the migration is known, and later plans reckon with it."""

    TYPE: ClassVar[str] = "mitigation.measured.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "plan_id"
    plan_id: str = Field(description="the plan")
    fault_id: str = Field(description="the first of the faults that it helps")
    job_id: str = Field(description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt that runs now")
    cost_s: float = Field(ge=0, description="from its stop to its start, and lost work, cluster s")
    gpus: float = Field(ge=0, description="GPUs of the gang, in devices")


@event
class MitigationAccounted(Event):
    """The attempt after a migration ended: its gain is estimated.

    How long the fault would have lasted is not known: the mean over the durations of earlier faults
    is taken, at most as long as the job still ran.
    """

    TYPE: ClassVar[str] = "mitigation.accounted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "plan_id"
    plan_id: str = Field(description="the plan")
    fault_id: str = Field(description="the first of the faults that it helps")
    job_id: str = Field(description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    ran_s: float = Field(ge=0, description="run of the attempt after the migration, cluster s")
    gpus: float = Field(ge=0, description="GPUs of the gang, in devices")
    cost_s: float = Field(ge=0, description="cost of the migration, cluster s")
    avoided_s: float = Field(ge=0, description="estimated loss that it spared the gang, cluster s")
    observed_faults: int = Field(ge=0, description="earlier faults that the estimate rests on")
