"""The state of one pool, folded from placement's ledger; only `evolve` changes it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from services.placement.core.pool.board import Board
from services.placement.core.pool.job import Job
from services.placement.core.pool.loss_budget import MILLI, LossAccount, LossBudget, budget_of
from services.placement.core.pool.node import Node
from services.placement.core.pool.queue import EquivalenceClass, Queue, bucket_of
from services.placement.core.pool.ranks import NamedOrder, Ranks
from services.placement.core.pool.schedule import RecentNeeds, Schedule, Shadow
from services.placement.core.pool.settings import times_of
from services.placement.core.pool.shape import Shape, Slot
from shared.contracts.clocks import ClockStepped
from shared.contracts.injections import FaultInjected
from shared.contracts.mitigation import MitigationTurnedDown
from shared.contracts.nodes import NodeJoined
from shared.contracts.pools import PoolConfigured, default_of
from shared.contracts.terms import PoolTerms, silence_bound_ms, suspicion_bound_ms
from shared.ledger.answers import AnsweredCommands

LARGE_MOST = 0.1
"""Share of recent arrivals that are large gangs, at which rank stops none of them any more."""
LARGE_MEMORY = 100.0
"""Arrivals after which an old one counts 1/e."""
SUSPECT_AFTER_S: float = default_of("suspect_after_s")
START_TIMEOUT_MS = round(default_of("start_timeout_s") * 1000)


class OpenRound(NamedTuple):
    """A contended round that waits for the solver."""

    seq: int
    """Sequence number of the record that opened it; an answer names it."""
    at: int
    until: int
    """ms at which greedy plans the round, without an answer."""


@dataclass(slots=True)
class Pool:
    """All jobs and nodes of one pool: one lane of the ledger."""

    partition: int
    settings: PoolConfigured | None = None
    clock_step: ClockStepped | None = None
    """The last step of the host's clock."""
    board: Board = field(default_factory=Board)
    cordons: dict[str, bool] = field(default_factory=dict)
    """Node id -> is draining; a cordon outlives the node's agent."""
    leaving: set[str] = field(default_factory=set)
    """Cordoned nodes whose agents refuse work until they leave; the next join lifts the cordon."""
    cordoned_for: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Node id -> the suspicions of fail-slow, or the problems, for which it is cordoned."""
    fault_boots: dict[str, str] = field(default_factory=dict)
    """Node id -> boot of the machine in which a GPU failed, while it is cordoned for that."""
    lost: dict[str, int] = field(default_factory=dict)
    """Lost nodes that still have allocations -> ms when lost, oldest first."""
    terms: list[PoolTerms] = field(default_factory=list)
    """Terms of leases, the present ones last; older ones for nodes that join under them."""
    generations: dict[str, int] = field(default_factory=dict)
    """Node id -> highest generation that joined; it outlives the node."""
    gone: dict[str, None] = field(default_factory=dict)
    """Lost nodes with an agent that hold nothing any more, the latest; the oldest first."""
    generation_floor: int = 0
    """Highest generation of the nodes with an agent that are forgotten: names begin above it."""
    held_back: dict[str, NodeJoined] = field(default_factory=dict)
    """Node id -> registration of another machine, until the older one holds nothing."""
    stuck: dict[str, str] = field(default_factory=dict)
    """Allocation id -> node id of workers that were killed and do not die."""
    injections: dict[str, FaultInjected] = field(default_factory=dict)
    """Node id -> the fault that is injected there, for a drill."""
    jobs: dict[str, Job] = field(default_factory=dict)
    waiting: dict[str, Job] = field(default_factory=dict)
    queue: Queue = field(default_factory=Queue)
    """The waiting jobs in the order of the last rank."""
    unreported: dict[str, None] = field(default_factory=dict)
    """Waiting jobs whose hold reason may differ from the one last published."""
    starting: dict[str, int] = field(default_factory=dict)
    """Placed jobs that have not started -> ms when placed, oldest first."""
    reservations: dict[str, dict[str, None]] = field(default_factory=dict)
    """Job id -> the victims whose GPUs are reserved for it."""
    migrations: dict[str, tuple[Slot, ...]] = field(default_factory=dict)
    """Job id -> the slots reserved for it while it migrates or is resized."""
    waiting_plans: dict[str, MitigationTurnedDown] = field(default_factory=dict)
    """Job id -> the plan by which it leaves slow nodes once other nodes have room."""
    elastic: dict[str, None] = field(default_factory=dict)
    """Running jobs that can be resized."""
    ranks: Ranks = field(default_factory=Ranks)
    named_order: NamedOrder | None = None
    """The last order with the jobs of no use to it, where changes to it follow."""
    running: dict[str, Job] = field(default_factory=dict)
    """Jobs on GPUs, in the order in which they were placed."""
    tiers: Counter[int] = field(default_factory=Counter)
    """Number of jobs on GPUs of each tier."""
    large: float = 1.0
    """Share of recent arrivals that are large gangs; 1 until there is evidence."""
    changed: bool = False
    """Something happened since the last round that could let a job start."""
    first_change: int = 0
    """ms of the first of these changes since a job waits."""
    last_change: int = 0
    open_round: OpenRound | None = None
    """The contended round, if one is open; nothing starts before it ends."""
    round_no: int = 0
    round_at: int = 0
    again_at: int | None = None
    unscanned: int = 0
    """Number of waiting jobs that no round has passed over yet."""
    overdue: str = ""
    """Job for which GPUs are reserved because it waited too long, of a guarded pool; or none."""
    overdue_from_ms: int = 0
    """Time of the first round that reserved them."""
    lapsed_from_ms: int = 0
    """The same of the last reservation that lapsed: jobs placed by then outlasted it."""
    unreserved_until_ms: int = 0
    """Time until which no GPUs are reserved for overdue jobs, after that lapse."""
    loss: LossAccount = field(default_factory=LossAccount)
    """The cost of stops by rank and of migrations."""
    schedule: Schedule = field(default_factory=Schedule)
    """The last proposal of the pool's scheduler."""
    shadow: Shadow = field(default_factory=Shadow)
    recent_needs: RecentNeeds = field(default_factory=RecentNeeds)
    arrays: dict[str, None] = field(default_factory=dict)
    """Arrays that have not ended and have a recorded program."""
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)

    @property
    def name(self) -> str:
        return self.settings.pool if self.settings else ""

    @property
    def time_scale(self) -> float:
        return self.settings.time_scale if self.settings else 1.0

    @property
    def is_ranked(self) -> bool:
        """Return whether rank may stop jobs."""
        return self.settings is not None and self.settings.preemption == "ranked"

    @property
    def is_scheduled(self) -> bool:
        """Return whether a scheduler decides types and numbers of GPUs."""
        return self.settings is not None and self.settings.scheduler is not None

    @property
    def largest_victim_gpus(self) -> float:
        """Size of the largest gang that rank stops.

        Where many recent gangs are large, one that is stopped for short jobs would wait for ever
        for as many free GPUs.
        """
        share = self.settings.large_gang_share if self.settings else 1.0
        if share >= 1.0 or self.large < LARGE_MOST:
            return math.inf
        return share * self.board.gpus

    def note_arrival(self, shape: Shape) -> None:
        """Count an arrival in the moving share of large gangs."""
        share = self.settings.large_gang_share if self.settings else 1.0
        gpus = shape.max_workers * shape.worker_milli / 1000
        large = 1.0 if gpus > share * self.board.gpus else 0.0
        self.large += (large - self.large) / LARGE_MEMORY

    def lost_after_ms(self, node: Node) -> float:
        """Return the ms of silence that prove that nothing of the node lives; may be infinite."""
        if self.settings is None or not node.terms:
            return math.inf
        settings, stops = self.settings, node.terms.values()
        return max(silence_bound_ms(settings, node.backend, stop) for stop in stops)

    def suspect_after_ms(self, node: Node) -> int:
        """Return the ms of silence after which nothing is placed on the node."""
        settings = self.settings
        if settings is None:
            return round(SUSPECT_AFTER_S * 1000)
        return suspicion_bound_ms(settings, node.backend)

    @property
    def start_timeout_ms(self) -> int:
        return times_of(self.settings).start_timeout_ms if self.settings else START_TIMEOUT_MS

    @property
    def min_residency_ms(self) -> int:
        """Wall ms from a start before which a job is neither outranked, migrated nor resized."""
        return times_of(self.settings).min_residency_ms if self.settings else 0

    @property
    def loss_share(self) -> int:
        """Share of GPU time that stops may cost, in 1 / `loss_budget.SHARES`."""
        return times_of(self.settings).loss_share if self.settings else 0

    def loss_at(self, now: int) -> LossBudget:
        """Return the loss budget at `now` ms."""
        share = self.loss_share
        window_ms = times_of(self.settings).loss_window_ms if self.settings else 0
        budget = budget_of(share, self.board.gpus * MILLI, window_ms)
        return LossBudget(now, self.loss.spent_at(now, share), share, budget, self.loss.used_milli)

    def count_use(self, slot: Slot, sign: int, at: int) -> None:
        """Count the GPUs of a slot as in use, or no longer (-1), from `at` ms on."""
        self.loss.use(at, sign * len(slot.gpus) * slot.milli, self.loss_share)

    def running_elastic(self) -> list[Job]:
        """Return the elastic jobs that run, in the order in which they started."""
        jobs = (self.running.get(job_id) for job_id in self.elastic)
        return [job for job in jobs if job is not None and job.phase == "running"]

    def can_grow(self) -> bool:
        """Return whether a round is worth it although no job waits."""
        if not self.elastic or self.waiting:
            return False
        return any(len(job.allocations) < job.shape.max_workers for job in self.running_elastic())

    def can_change(self) -> bool:
        """Return whether a round is worth it although no job waits: elastic jobs may grow, or the
        scheduler may change the GPUs of running ones.
        """
        return self.can_grow() or (self.is_scheduled and bool(self.running))

    def touch(self, at: int) -> None:
        """Note a change at `at` ms that could let a job start."""
        if not self.waiting:
            self.again_at = None
        if not (self.changed and self.waiting):
            self.first_change = at
        self.last_change = at
        self.changed = True

    def enter(self, job: Job, at: int) -> None:
        """Put the job into the queue."""
        self.touch(at)
        self.let_go(job)
        self.elastic.pop(job.job_id, None)
        job.phase = "waiting"
        job.round_no = self.round_no
        self.waiting[job.job_id] = job
        self.queue.add(self.equivalence_class(job), job.queue_key(self.ranks.scores))
        self.unreported[job.job_id] = None
        self.unscanned += 1

    def leave(self, job: Job) -> None:
        """Take the job out of the queue, with its reservation and target."""
        if self.waiting.pop(job.job_id, None) is not None:
            self.queue.remove(self.equivalence_class(job), job.queue_key(self.ranks.scores))
            self.unreported.pop(job.job_id, None)
            self.unscanned -= job.round_no == self.round_no
        self.reservations.pop(job.job_id, None)
        self.migrations.pop(job.job_id, None)

    def mark_unreported(self) -> None:
        """Recheck the hold reasons of all waiting jobs: the capacity has changed."""
        self.unreported.update(dict.fromkeys(self.waiting))

    def hold(self, job: Job) -> None:
        """Count the job among those on GPUs."""
        self.running[job.job_id] = job
        self.tiers[job.tier] += 1

    def let_go(self, job: Job) -> None:
        """Count the job no longer among those on GPUs."""
        self.waiting_plans.pop(job.job_id, None)
        if self.running.pop(job.job_id, None) is not None:
            self.tiers[job.tier] -= 1

    def equivalence_class(self, job: Job) -> EquivalenceClass:
        """Return the group of the queue in which the job waits."""
        is_timed = self.settings is not None and self.settings.queue_mode == "easy"
        bucket = bucket_of(job.estimate_ms(self.time_scale)) if is_timed else 0
        alone = job.job_id if job.avoid or job.not_before else ""
        return EquivalenceClass(job.tier, job.shape, bucket, alone)
