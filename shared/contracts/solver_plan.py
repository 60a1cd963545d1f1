"""The solver's plan of an open round, as placement gets it from the solver's process."""

from __future__ import annotations

from pydantic import Field

from shared.contracts.base import JobId, Local, Model
from shared.contracts.placement import Allocation, SolverStatus


class PlannedStart(Model):
    """A waiting job and its planned allocations."""

    job_id: JobId = Field(description="the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    allocations: tuple[Allocation, ...] = Field(min_length=1, description="one per worker")
    terms: dict[str, float] = Field(
        default_factory=dict, description="terms of the decision by name"
    )


class PlannedStop(Model):
    """A victim of the plan and the waiting job that it makes room for."""

    job_id: JobId = Field(description="the victim")
    attempt: int = Field(ge=1, description="number of the attempt")
    by_job_id: JobId = Field(description="the job that it makes room for")


class PlannedWait(Model):
    """A waiting job that does not start in this round: faster GPUs should be free soon."""

    job_id: JobId = Field(description="the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    until: int = Field(description="expected ms of their release")


class PlanReady(Local):
    """The solver's plan of an open round; placement drops the parts that no longer apply."""

    at_seq: int = Field(description="seq of the record with the RoundOpened that it answers")
    status: SolverStatus = Field(description="how the plan was found")
    starts: tuple[PlannedStart, ...] = Field((), description="in queue order")
    stops: tuple[PlannedStop, ...] = Field((), description="victims")
    moves: tuple[PlannedStart, ...] = Field(
        (), description="victims to migrate, if the rules allow it; also in `stops`"
    )
    weighed: tuple[JobId, ...] = Field(
        (), description="jobs whose right to preempt others was used"
    )
    waits: tuple[PlannedWait, ...] = Field((), description="jobs that do not start yet")
    objective: int = Field(0, description="objective of this plan; higher is better")
    greedy: int = Field(0, description="objective of greedy's plan of the same view")
    bound: int = Field(0, description="upper bound of the objective")
    solve_ms: float = Field(0.0, ge=0, description="wall ms in the solver's process")
    terms: dict[str, float] = Field(default_factory=dict, description="parts of the objective")
