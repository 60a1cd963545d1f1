"""State of one pool's lane: waiting and running jobs, and the use of each tenant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from services.priority.core.caches.last_order import LastOrder
from services.priority.core.caches.order_cache import OrderCache
from services.priority.core.caches.running_order import RunningOrder
from services.priority.core.history.accuracy import Accuracy
from services.priority.core.history.coverage import Coverage
from services.priority.core.history.history import History
from services.priority.core.history.intervals import IntervalCalibration
from services.priority.core.history.open_estimates import OpenEstimates
from services.priority.core.queue.queue_view import Clock, QueueView, view_of
from services.priority.core.queue.table import JobTable
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.clocks import ClockStepped
from shared.contracts.pools import PoolConfigured, default_of
from shared.contracts.ranking import QueueEntry

JobPhase = Literal["waiting", "running", "parked"]
HALF_LIFE_S: float = default_of("half_life_s")


@dataclass(slots=True)
class PoolJob:
    """A job from its admission to its end; `entry` is None while only placement has named it."""

    entry: QueueEntry | None
    phase: JobPhase
    tenant: str
    row: int
    """Row of its numbers in the table."""


@dataclass(slots=True)
class DecayedUsage:
    """GPU-seconds that decay with the pool's half-life; `value` is as of `at` (ms)."""

    value: float = 0.0
    at: int = 0

    def decayed(self, at: int, half_life_s: float) -> float:
        """Return the value at the moment `at`."""
        age_s = max(0, at - self.at) / 1000
        return float(self.value * 0.5 ** (age_s / half_life_s))

    def add(self, gpu_s: float, at: int, half_life_s: float) -> None:
        self.value = self.decayed(at, half_life_s) + gpu_s
        self.at = at


@dataclass(slots=True)
class PriorityState:
    """One pool's lane; only `evolve` changes it."""

    partition: int
    pool: PoolConfigured | None = None
    clock_step: ClockStepped | None = None
    """The last step of the host's clock."""
    weights: dict[str, float] = field(default_factory=dict)
    tenants: dict[str, int] = field(default_factory=dict)
    """A number for each tenant that ever had a job here, as in the table."""
    jobs: dict[str, PoolJob] = field(default_factory=dict)
    waiting: dict[str, QueueEntry] = field(default_factory=dict)
    table: JobTable = field(default_factory=JobTable)
    gone_early: set[str] = field(default_factory=set)
    usage: dict[str, DecayedUsage] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    """GPUs of each present node."""
    history: History = field(default_factory=History)
    accuracy: Accuracy = field(default_factory=Accuracy)
    calibration: IntervalCalibration = field(default_factory=IntervalCalibration)
    coverage: Coverage = field(default_factory=Coverage)
    starts: OpenEstimates = field(default_factory=OpenEstimates)
    origin: int | None = None
    """ms: submission of the pool's first job"""
    ranked_at: int = 0
    head: str = ""
    dirty: bool = False
    degraded: dict[str, str] = field(default_factory=dict)
    """Failure of each degraded policy, by `degraded_key`; it was reported once."""
    shadowed_at: int = 0
    context: tuple[float, ...] = ()
    """Context of networks, see `features`; empty: it has to be computed."""
    context_at: int = 0
    last_order: LastOrder | None = None
    """The last ranking, if the next one may be recorded as its changes."""
    order_cache: OrderCache = field(default_factory=OrderCache, compare=False, repr=False)
    running_order: RunningOrder = field(default_factory=RunningOrder, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.pool.pool if self.pool else ""

    @property
    def half_life_wall_s(self) -> float:
        """The half-life in wall s, as use is counted; the setting is in cluster seconds."""
        return self.pool.half_life_s / self.pool.time_scale if self.pool else HALF_LIFE_S

    @property
    def time_scale(self) -> float:
        return self.pool.time_scale if self.pool else 1.0

    @property
    def capacity_gpus(self) -> float:
        return float(sum(self.nodes.values()))

    def mark(self, job_id: str) -> None:
        """Let the next ranking look at the job again: its phase or its row has changed."""
        self.order_cache.mark(job_id)
        self.running_order.mark(job_id)

    def prediction_terms(self) -> dict[str, float]:
        """Return how well run times were predicted."""
        return self.accuracy.terms() | self.coverage.terms()

    def view(self, now: int) -> QueueView:
        return view_of(self.table, self.clock(now), self.capacity_gpus)

    def clock(self, now: int) -> Clock:
        return Clock(now, self.origin or 0, self.time_scale)

    def noted_tenant(self, tenant: str) -> TenantNoted | None:
        """Return the tenant with the weight that the ledger has; None if it has none."""
        weight = self.weights.get(tenant)
        return None if weight is None else TenantNoted(tenant=tenant, weight=weight)

    def number_of(self, tenant: str) -> int:
        """Return the tenant's number; only `evolve` may add a tenant."""
        return self.tenants.setdefault(tenant, len(self.tenants))
