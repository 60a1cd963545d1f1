"""The proposal of one placement round, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from services.placement.core.pool.job import Job, ProtectionRule
from services.placement.core.pool.shape import Slot
from shared.contracts.attempts import MigrationReason
from shared.contracts.placement import HoldReason


class Assignment(NamedTuple):
    """A waiting job and the slots on which it starts."""

    job: Job
    slots: list[Slot]
    position: int
    """Its place in the queue, from 0."""
    gpus_left: int
    """Whole free GPUs that stay on its first node."""
    terms: Mapping[str, float] = {}
    """Further figures that explain the placement."""


class Eviction(NamedTuple):
    """A victim, the job that it makes room for, and the price."""

    job: Job
    by: Job
    lost_work_s: float
    score: float | None = None
    by_score: float | None = None
    costs: Mapping[str, float] = {}
    """Terms of the event: what the stop costs beside the lost work."""


class Migration(NamedTuple):
    """A running job that goes on elsewhere: one slot per worker, in rank order."""

    job: Job
    slots: list[Slot]
    reason: MigrationReason
    by: Job | None = None
    """The job that gets what this one leaves."""


class Resize(NamedTuple):
    """A running elastic job that goes on with another number of workers."""

    job: Job
    slots: list[Slot]
    by: Job | None = None
    """The job that gets what this one gives up; None if it grows."""


class Deferral(NamedTuple):
    """Victims of a waiting job of which some are still protected."""

    by: Job
    victims: list[tuple[Job, ProtectionRule]]
    """Those that are protected, each with the rule."""
    number: int
    """All victims, those that could be stopped now included."""
    until_ms: int


class Hold(NamedTuple):
    """A job that stays in the queue, with the new reason."""

    job: Job
    reason: HoldReason
    short_gpus: float
    detail: dict[str, float | str]


@dataclass(slots=True)
class Plan:
    """The proposal of one round."""

    assignments: list[Assignment] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    deferrals: list[Deferral] = field(default_factory=list)
    migrations: list[Migration] = field(default_factory=list)
    resizes: list[Resize] = field(default_factory=list)
    stops: list[Job] = field(default_factory=list)
    """Running jobs to which the pool's scheduler allots no GPUs, or others."""
    planner: str = "best_fit"
    """Name of the policy that placed the gangs, or of the scheduler that allotted the GPUs."""
    waiting: int = 0
    unfinished: bool = False
    """Cut short by its bounds: another round follows."""
    again_at: int | None = None
    """ms: another round is worth it then, even if nothing happens."""

    first_blocked: Job | None = None
    """The first job of the queue that could start now and does not."""

    def stopped_jobs(self) -> frozenset[str]:
        """Return the ids of the jobs that stop so that others start."""
        if not (self.evictions or self.migrations or self.stops):
            return frozenset()
        return frozenset(
            [eviction.job.job_id for eviction in self.evictions]
            + [migration.job.job_id for migration in self.migrations]
            + [job.job_id for job in self.stops]
        )

    def repeat_at(self, at: int) -> None:
        """Request another round at `at` ms, or earlier if that was requested already."""
        self.again_at = at if self.again_at is None else min(self.again_at, at)
