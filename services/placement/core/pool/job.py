"""One job as placement knows it, from its admission to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from services.placement.core.pool.queue import UNRANKED, QueueKey
from services.placement.core.pool.shape import Shape, Slot
from shared.contracts.checkpoint import interval_ms, kept_ms, restart_ms, stop_cost_ms, wall_ms
from shared.contracts.failures import WorkerFailure
from shared.contracts.job_names import Program
from shared.contracts.job_spec import JobSpec

LOST_WORK_CAP_S = 604_800.0

Phase = Literal["waiting", "placed", "running", "stopping", "parked"]
Stop = Literal["", "cancelled", "start_failed", "worker_failed", "preempted"]
ProtectionRule = Literal[
    "", "residency", "progress", "checkpoint", "guarantee", "no_checkpoints", "loss_budget"
]
"""The rule that protects a job; `loss_budget` protects all jobs of a pool that has spent it."""


class WorkerAllocation(NamedTuple):
    """The slot of one worker, until its release is folded."""

    rank: int
    slot: Slot


class StopWindow(NamedTuple):
    """The time in which rank may stop one start of a job: from `opens_ms` until `closes_ms`."""

    key: tuple[object, ...]
    """Everything that it was computed from, but the moment `since_ms`."""
    since_ms: int
    """It says nothing of earlier moments."""
    opens_ms: int
    closes_ms: int
    """The last ms of the window; what follows has to be computed anew."""
    rule: ProtectionRule
    """Rule that protects the job until the window opens."""
    restart_ms: int
    """Wall ms that the next start takes before its work goes on."""


class Forecast(NamedTuple):
    """The time at which a running job should end, by the iterations that it reported."""

    at: int
    """ms, when that was recorded."""
    step: int
    """Iterations that were done then."""
    ends_at: int
    """ms"""
    believed_until: int
    """ms; the same for all of one start."""


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
    predicted_s: float | None = None
    """Run time that priority predicts, in cluster s, where a round decides by it."""
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
    done_s: float = 0.0
    """Cluster s of work in its last checkpoint, of a job with several pools on virtual nodes."""
    debt_ms: int = 0
    """Cost of the last preemption: the work that was lost, and the restart after it."""
    restart_wall_ms: int = 0
    """Wall ms that its next start is taken to need before its work goes on, unless its
    specification says so: as its last start showed, else as the pool assumes."""
    has_shown_restart: bool = False
    """A start of it has shown how long that takes."""
    paid_restart_ms: int = 0
    """The same as it was when this start began."""
    checkpoint_step: int = 0
    """Step of the last checkpoint that it reported, in any start."""
    step_us: int = 0
    """Wall microseconds of a step between its last two checkpoints of one start; 0: not known."""
    checkpointed_ms: int = 0
    """Wall ms of work of this start in the last checkpoint that it reported; 0: none."""
    forecast: Forecast | None = None
    """By its own reports in this start; None: there is none."""
    program: Program | None = None
    """Tenant, user and name pattern of what it runs; None: not known."""
    held_ms: int = 0
    """Wall ms of its former attempts on GPUs."""
    held_gpu_ms: float = 0.0
    """The same, times their GPUs."""
    longest_ms: int = 0
    """Wall ms of the longest of its former attempts."""
    unreserved_until_ms: int = 0
    """Time until which no GPUs are reserved for its long wait, after a lapse."""
    deferred_until_ms: int = 0
    """Time up to which stops of protected jobs for it are recorded as deferred; 0: none is."""
    starts: int = 0
    """Starts since it entered the queue new, or again after its program failed."""
    stop_window: StopWindow | None = field(default=None, compare=False, repr=False)
    """Memo of `round.protection`: it can be computed again at any moment."""

    def ran_ms(self, now: int) -> int:
        return max(0, now - self.started_at) if self.started_at else 0

    def estimate_ms(self, time_scale: float, least_ms: int = 0) -> int | None:
        """Return the wall ms that it is predicted to run, `least_ms` or more, and at most what its
        user estimates; None if neither is known.
        """
        estimates_ms = []
        if self.predicted_s is not None:
            estimates_ms.append(max(least_ms, wall_ms(self.predicted_s, time_scale)))
        if self.spec.walltime_s is not None:
            estimates_ms.append(wall_ms(self.spec.walltime_s, time_scale))
        return max(1, min(estimates_ms)) if estimates_ms else None

    def note_run(self, at: int) -> None:
        """Note how long the attempt that is over at `at` ms ran."""
        ran_ms = self.ran_ms(at)
        self.longest_ms = max(self.longest_ms, ran_ms)
        self.held_ms += ran_ms
        self.held_gpu_ms += ran_ms * self.gpus

    def queue_key(self, scores: Mapping[str, float]) -> QueueKey:
        """Return its place in the queue, as ranked by these scores."""
        score = scores.get(self.job_id)
        negated_score = UNRANKED if score is None else -score
        return QueueKey(True, self.tier, True, negated_score, self.submitted_at, self.job_id)

    def lost_ms(self, now: int, time_scale: float) -> int:
        """Return the wall ms of work since the last checkpoint, which a preemption would undo.

        Checkpoints count from the last one that it reported in this start.
        """
        worked = max(0, self.ran_ms(now) - self.paid_ms(time_scale))
        return worked - kept_ms(self.spec, worked, time_scale, self.checkpointed_ms)

    def paid_ms(self, time_scale: float) -> int:
        """Return the wall ms of restart that this start pays before its work goes on."""
        if not self.resumes:
            return 0
        return self.paid_restart_ms if self.spec.simulated is None else self.restart_ms(time_scale)

    def restart_ms(self, time_scale: float) -> int:
        """Return the wall ms that its next start takes before its work goes on."""
        if self.spec.simulated is None:
            return self.restart_wall_ms
        return restart_ms(self.spec, time_scale)

    def restart_s(self, time_scale: float) -> float:
        """Return the same in cluster seconds."""
        if self.spec.simulated is None:
            return self.restart_wall_ms / 1000 * time_scale
        return self.spec.simulated.restart_s

    def work_from_ms(self, time_scale: float) -> int:
        """Return the ms from which this start works."""
        return self.started_at + self.paid_ms(time_scale)

    def interval_ms(self, time_scale: float) -> int | None:
        """Return the wall ms of work between checkpoints; None if it makes none."""
        return interval_ms(self.spec, time_scale)

    def stop_cost_ms(self, time_scale: float) -> int:
        """Return the wall ms of work that a stop loses which writes a checkpoint; 0: none does."""
        return stop_cost_ms(self.spec, time_scale)

    @property
    def gpus_milli(self) -> int:
        return round(self.gpus * 1000)

    def lost_work_s(self, now: int, time_scale: float) -> float:
        """Return the same in cluster seconds, at most a week."""
        return min(self.lost_ms(now, time_scale) / 1000 * time_scale, LOST_WORK_CAP_S)

    def set_back(self, now: int, time_scale: float) -> None:
        """Note the cost of a preemption at `now`; a start that never ran costs nothing."""
        if self.started_at:
            self.debt_ms = self.lost_ms(now, time_scale) + self.restart_ms(time_scale)
            self.resumes = True

    def gpu_s(self, now: int) -> float:
        return self.gpus * self.ran_ms(now) / 1000

    @property
    def has_permanent_failure(self) -> bool:
        """Return whether a worker failed for a reason that makes every further attempt fail."""
        return self.failure is not None and self.failure.permanent

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(allocation.slot.node_id for allocation in self.allocations.values())
        )
