"""State of one pool's lane: the watched gangs, and the faults suspected so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from services.failslow.core.fleet import Fleet
from services.failslow.core.health.gpu_problems import GpuProblems
from services.failslow.core.measures.history import PaceBook
from services.failslow.core.measures.strictness import Strictness
from services.failslow.core.mitigation.mitigation_state import MitigationState
from services.failslow.core.witnesses import Witnesses
from shared.contracts.clocks import ClockStepped
from shared.contracts.faults import Cause, GangWorker, SuspicionKind
from shared.contracts.parallelism import AdaptedSchedule
from shared.contracts.pools import PoolConfigured
from shared.ledger.answers import AnsweredCommands

CLOSED_KEPT = 10_000
VALIDATIONS_KEPT = 100
"""Validations of fail-slow itself of which no verdict came."""

JOB = -1
"""Stands in the place of a rank for a job as a whole."""

Status = Literal["open", "cleared", "dismissed", "false_alarm"]


@dataclass(slots=True)
class TrackedFault:
    """A suspicion, open or closed."""

    fault_id: str
    job_id: str
    tenant: str
    node_id: str
    attempt: int
    rank: int
    """Of the slow worker, `JOB` if the job as a whole became slow."""
    status: Status = "open"
    traceparent: str = ""
    """Of the suspicion."""

    @property
    def kind(self) -> SuspicionKind:
        return "job" if self.rank == JOB else "worker"


@dataclass(frozen=True, slots=True)
class SlowPace:
    """Pace of a job as it became slow, by which its recovery is judged after a restart."""

    usual_s: float
    slowdown: float
    work: float


@dataclass(slots=True)
class Unclear:
    """A job that is slow as a whole, of which no part is known; times are cluster seconds."""

    fault_id: str
    cause: Cause
    slowdown: float
    """0.25 if iterations take 1.25 times as long."""
    since_s: float
    is_planned: bool = False
    """Its nodes are measured, or are to be: once per attempt."""
    schedule: AdaptedSchedule | None = None
    """Of its pipeline, where one would absorb the delay of its links."""
    is_advised: bool = False
    """The schedule is advised: once per attempt."""
    is_stated: bool = False
    """An event says which plan is due next."""


@dataclass(frozen=True, slots=True)
class OwnValidation:
    """A validation that fail-slow submits for a job: what is needed to follow its verdict."""

    plan_id: str
    job_id: str
    tenant: str
    attempt: int
    fault_id: str
    node_ids: tuple[str, ...]
    gpus: int
    """Whole GPUs of each node, as the job had them."""
    applied_s: float
    is_over: bool = False
    """Its plan has ended before its job was stopped."""


@dataclass(slots=True)
class GangState:
    """A placed gang; `open` and `counts` are by rank, `muted` ranks are not suspected again."""

    tenant: str
    attempt: int
    workers: dict[int, GangWorker]
    traceparent: str = ""
    """Of the placement that began it; verdicts are linked to it."""
    open: dict[int, str] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    muted: set[int] = field(default_factory=set)
    gpus: float = 0.0
    pace: SlowPace | None = None
    """Of a job that is slow as a whole."""
    unclear: Unclear | None = None
    """Of such a job with no known part."""
    validates: bool = False
    """Its reports are measurements of its nodes, and are compared as those."""
    preemptible: bool = False
    """A job that measures its nodes may stop it."""


@dataclass(slots=True)
class FailSlowState:
    """One pool's lane; only `evolve` changes it."""

    partition: int
    pool: PoolConfigured | None = None
    clock_step: ClockStepped | None = None
    """The last step of the host's clock."""
    gangs: dict[str, GangState] = field(default_factory=dict)
    faults: dict[str, TrackedFault] = field(default_factory=dict)
    closed: dict[str, None] = field(default_factory=dict)
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)
    mitigation: MitigationState = field(default_factory=MitigationState)
    fleet: Fleet = field(default_factory=Fleet)
    gpu_problems: GpuProblems = field(default_factory=GpuProblems)
    strictness: Strictness = field(default_factory=Strictness)
    paces: PaceBook = field(default_factory=PaceBook)
    validations: dict[str, OwnValidation] = field(default_factory=dict)
    """Of fail-slow itself, by the id of the measuring job, the oldest first."""
    witnesses: Witnesses = field(default_factory=Witnesses)

    @property
    def name(self) -> str:
        return self.pool.pool if self.pool else ""

    def cluster_s(self, at: int) -> float:
        """Return a time of the ledger, ms, in seconds of the cluster."""
        return at / 1000 * (self.pool.time_scale if self.pool else 1.0)

    def gang_of(self, fault: TrackedFault) -> GangState | None:
        """Return the gang of a fault; None once the attempt that suffered is over."""
        gang = self.gangs.get(fault.job_id)
        return gang if gang is not None and gang.attempt == fault.attempt else None

    def close(self, fault_id: str, status: Status) -> None:
        """Close a fault; it is kept for a while, as an operator may still mark a false alarm."""
        fault = self.faults.get(fault_id)
        if fault is None:
            return
        fault.status = status
        self.closed[fault_id] = None
        if len(self.closed) > CLOSED_KEPT:
            oldest = next(iter(self.closed))
            del self.closed[oldest]
            del self.faults[oldest]
