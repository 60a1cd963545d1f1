"""The pace of jobs: its changes, from fail-slow's shell, and that of earlier runs."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, Local, event
from shared.contracts.faults import Cause
from shared.contracts.parallelism import PipelineProfile


class JobPaceChanged(Local):
    """A verified change of a job's time per unit of work."""

    job_id: str = Field(description="the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    is_slow: bool = Field(description="whether it became slow; else it recovered")
    since_step: int = Field(ge=0, description="iteration of the change point")
    iterations: int = Field(ge=1, description="iterations from the change point on")
    slowdown: float = Field(gt=0, description="time per unit of work over the usual one")
    iteration_s: float = Field(ge=0, description="s of an iteration since the change point")
    usual_s: float = Field(ge=0, description="s of an iteration of as much work before")
    score: float = Field(description="the shift in its standard errors")
    confidence: float = Field(ge=0, le=1, description="probability of the change point")
    cause: Cause = Field("unknown", description="compute or communication, as reports show it")
    cause_confidence: float = Field(0.0, ge=0, le=1, description="0 where the cause is unknown")
    cause_evidence: tuple[str, ...] = Field((), description="sentences with figures")
    work: float = Field(0.0, ge=0, description="tokens or samples of an iteration; 0: unknown")
    earlier_runs: int = Field(
        0, ge=0, description="runs that it is compared with; 0: with its own iterations before"
    )
    pipeline: PipelineProfile | None = Field(None, description="its pipeline, if it reports one")


class JobPaceSettled(Local):
    """The pace of an attempt that has ended."""

    job_id: str = Field(description="the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    series: str = Field(description="name of jobs that do the same work")
    pace_s: float = Field(gt=0, description="s per token or sample, or per iteration")
    has_work: bool = Field(description="whether tokens or samples are reported")


@event
class PaceLearned(Event):
    """An attempt ended: later jobs of its series are compared with its pace."""

    TYPE: ClassVar[str] = "pace.learned.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "series"
    PUBLIC: ClassVar[bool] = False
    series: str = Field(description="hash of tenant, name, GPU types and size of a job")
    job_id: str = Field(description="the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    pace_s: float = Field(gt=0, description="s per token or sample, or per iteration")
    has_work: bool = Field(False, description="whether tokens or samples are reported")
