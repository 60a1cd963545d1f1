"""One job as placement knows it, from its admission to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from services.placement.core.pool.queue import UNRANKED, QueueEntry
from services.placement.core.pool.shape import Shape, Slot
from shared.contracts.checkpoint import kept_ms, restart_ms, wall_ms
from shared.contracts.failures import WorkerFailure
from shared.contracts.jobs import JobSpec

LOST_WORK_CAP_S = 604_800.0

Phase = Literal["waiting", "placed", "running", "stopping", "parked"]
Stop = Literal["", "cancelled", "start_failed", "worker_failed", "preempted"]


class WorkerAllocation(NamedTuple):
    """The slot of one worker, until its release is folded."""

    rank: int
    slot: Slot


@dataclass(slots=True)
class Job:
    """A job from its admission to its end."""

    job_id: str
    tenant: str
    submitted_at: int
    array_index: int | None
    spec: JobSpec
    shape: Shape
    tier: int
    attempt: int
    since: int
    avoid: tuple[str, ...] = ()
    phase: Phase = "waiting"
    trace: str = ""
    cause: str = ""
    round_no: int = 0
    hold_reason: str = ""
    not_before: int = 0
    """ms until which it backs off after a failed start."""
    failures: int = 0
    """Attempts whose program failed; lost or preempted ones are free."""
    start_failures: int = 0
    allocations: dict[str, WorkerAllocation] = field(default_factory=dict)
    """By allocation id; an entry goes when its release is folded."""
    gpus: float = 0.0
    ready: set[int] = field(default_factory=set)
    master_port: int | None = None
    """Port of the worker of rank 0, once it is ready."""
    placed_at: int = 0
    started_at: int = 0
    stop: Stop = ""
    stop_reason: str = ""
    """Why it stops, as its event has it."""
    makes_room_for: str = ""
    """Id of the job for which this one is stopped."""
    exit_code: int | None = None
    """Of the first worker that failed while the job ran."""
    failed_node: str = ""
    failure: WorkerFailure | None = None
    """Of the first worker that failed in the last start."""
    clean: bool = True
    """Every worker that is gone exited with 0."""
    resumes: bool = False
    """An earlier start was preempted: each further one pays for the restart."""
    debt_ms: int = 0
    """Cost of the last preemption: the work that was lost, and the restart after it."""

    def ran_ms(self, now: int) -> int:
        return max(0, now - self.started_at) if self.started_at else 0

    def estimate_ms(self, time_scale: float) -> int | None:
        """Return the wall ms that its user expects it to run; None without an estimate."""
        walltime_s = self.spec.walltime_s
        return None if walltime_s is None else max(1, wall_ms(walltime_s, time_scale))

    def entry(self, scores: Mapping[str, float]) -> QueueEntry:
        """Return its entry in the queue, as ranked by these scores."""
        score = scores.get(self.job_id)
        negated_score = UNRANKED if score is None else -score
        return QueueEntry(True, self.tier, True, negated_score, self.submitted_at, self.job_id)

    def lost_ms(self, now: int, time_scale: float) -> int:
        """Return the wall ms of work since the last checkpoint, which a preemption would undo."""
        restart = restart_ms(self.spec, time_scale) if self.resumes else 0
        worked = max(0, self.ran_ms(now) - restart)
        return worked - kept_ms(self.spec, worked, time_scale)

    def lost_work_s(self, now: int, time_scale: float) -> float:
        """Return the same in cluster seconds, at most a week."""
        return min(self.lost_ms(now, time_scale) / 1000 * time_scale, LOST_WORK_CAP_S)

    def set_back(self, now: int, time_scale: float) -> None:
        """Note the cost of a preemption at `now`; a start that never ran costs nothing."""
        if self.started_at:
            self.debt_ms = self.lost_ms(now, time_scale) + restart_ms(self.spec, time_scale)
            self.resumes = True

    def gpu_s(self, now: int) -> float:
        return self.gpus * self.ran_ms(now) / 1000

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(allocation.slot.node_id for allocation in self.allocations.values())
        )
