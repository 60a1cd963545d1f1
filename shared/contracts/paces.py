"""Changes of the pace of jobs, from fail-slow's shell."""

from __future__ import annotations

from pydantic import Field

from shared.contracts.base import Local
from shared.contracts.faults import Cause


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
