"""The view that a policy decides on, and the hooks of a policy; the engine owns time and rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from services.placement.core.pool.board import Board
from services.placement.core.pool.job import Job
from services.placement.core.pool.overdue import Overdue, overdue_at
from services.placement.core.pool.queue import Queue, QueueScan
from services.placement.core.pool.queue_order import queue_by
from services.placement.core.pool.settings import per_settings
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import Avoid
from services.placement.core.round.peers import RankRules
from services.placement.core.round.progress import scaled_price
from services.placement.core.round.protection import ProgressRules, Protection
from services.placement.core.round.victims import Victims
from shared.contracts.checkpoint import wall_ms
from shared.contracts.placement import DEFERRALS_FROM
from shared.contracts.pools import NEVER_S, PoolConfigured, QueueMode, default_of

RANK_FRESH_MS = 10_000
"""An older rank is ignored: priority is down. With `rank_ms` 0 each change is ranked at once, so
that the last rank stands until the next change, however long that takes."""
QUEUE_MODE: QueueMode = default_of("queue_mode")
"""Mode of a pool before its first event."""
BASE_ORDER = "class_submit"


class View(NamedTuple):
    """One pool at one moment; a policy changes nothing of it but through a trial of the board."""

    now: int
    time_scale: float
    board: Board
    waiting: Mapping[str, Job]
    queue: Queue
    unreported: Mapping[str, None]
    running: Mapping[str, Job]
    """Jobs on GPUs, in any phase."""
    jobs: Mapping[str, Job]
    reservations: Mapping[str, Mapping[str, None]]
    cordons: Mapping[str, bool]
    scores: Mapping[str, float]
    order: str
    model: str
    """sha256 of the learned policy that ranked; empty: the base policy did."""
    ranks_at: int
    overdue: Overdue
    """The job for which GPUs are reserved because it waited too long."""
    lapsed_from_ms: int
    """Time of the first round of the last such reservation that lapsed; 0: none did."""
    guards_estimates: bool
    """Whether EASY's estimates are at least the longest run so far of similar jobs."""
    ranks_stale: bool
    rank_rules: RankRules | None
    """None where rank stops no job."""
    victims: Victims
    queue_mode: QueueMode

    @property
    def ranks_age_s(self) -> float:
        return max(0, self.now - self.ranks_at) / 1000

    def is_out_of_turn(self, job: Job) -> bool:
        """Return whether its place in the queue is not by rank: that of a reservation, or a long
        wait.
        """
        return job.job_id in self.reservations or job.job_id == self.overdue.job_id

    def lost_work_s(self, job: Job) -> float:
        """Return the cluster seconds since its last checkpoint, which it would do again."""
        return job.lost_work_s(self.now, self.time_scale)


def scan_of(view: View) -> QueueScan:
    """Return a scan of the queue, with the jobs that are out of turn.

    Jobs with a reservation are first; the one that waited too long is the first of its class.
    """
    overdue = view.overdue.job_id
    names = [*view.reservations, overdue] if overdue else list(view.reservations)
    own = {}
    for job in (view.waiting[name] for name in names if name in view.waiting):
        usual = job.queue_key(view.scores)
        own[usual] = usual._replace(
            has_no_reservation=job.job_id not in view.reservations, is_in_turn=job.job_id != overdue
        )
    return QueueScan(view.queue, own)


def view_of(pool: Pool, now: int) -> View:
    """Return the view of the pool at `now` ms; ranks that are too old are left out of it."""
    ranks = pool.ranks
    is_lasting = pool.settings is not None and pool.settings.rank_ms == 0
    stale = bool(ranks.at) and not is_lasting and now - ranks.at >= RANK_FRESH_MS
    usable = bool(ranks.at) and not stale
    scores = ranks.scores if usable else {}
    rules = rank_rules(pool, scores, now)
    return View(
        now=now,
        time_scale=pool.time_scale,
        board=pool.board,
        waiting=pool.waiting,
        queue=queue_by(pool, {}) if stale else pool.queue,
        unreported=pool.unreported,
        running=pool.running,
        jobs=pool.jobs,
        reservations=pool.reservations,
        cordons=pool.cordons,
        scores=scores,
        order=ranks.policy if usable else BASE_ORDER,
        model=ranks.model if usable else "",
        ranks_at=ranks.at,
        overdue=overdue_at(pool, now),
        lapsed_from_ms=pool.lapsed_from_ms,
        guards_estimates=pool.settings is not None and pool.settings.guards_estimates,
        ranks_stale=stale,
        rank_rules=rules,
        victims=Victims(pool.running, pool.tiers, now, pool.time_scale, rules),
        queue_mode=pool.settings.queue_mode if pool.settings else QUEUE_MODE,
    )


def rank_rules(pool: Pool, scores: Mapping[str, float], now: int) -> RankRules | None:
    if pool.settings is None or not pool.is_ranked:
        return None
    settings = pool.settings
    rules, after_ms = stop_rules(settings)
    if rules.progress is None:
        return RankRules(scores, settings.preempt_margin, rules, pool.largest_victim_gpus, after_ms)
    loss = pool.loss_at(now)
    return RankRules(
        scores,
        settings.preempt_margin,
        rules,
        pool.largest_victim_gpus,
        after_ms,
        loss.is_paused,
        loss.opens_at_ms if loss.is_paused else None,
        scaled_price(settings.preempt_price, loss.fill),
        pool.ranks.gittins_s,
        settings.release >= DEFERRALS_FROM,
    )


class StopRules(NamedTuple):
    """The settings of a pool about stops by rank."""

    protection: Protection
    defragment_after_ms: int | None
    """From a job's start until it may migrate for a larger one; None: it never does."""


@per_settings
def stop_rules(settings: PoolConfigured) -> StopRules:
    """Return the same object for the same settings: rounds compare the protection."""
    scale, after_s = settings.time_scale, settings.defragment_after_s
    after_ms = None if after_s >= NEVER_S else wall_ms(after_s, scale)
    progress = None
    if settings.preemption_protection == "progress":
        progress = ProgressRules(
            wall_ms(settings.checkpoint_window_s, scale),
            wall_ms(settings.start_protection_s, scale),
            settings.cheap_restarts,
        )
    residency_ms = wall_ms(settings.min_residency_s, scale)
    return StopRules(Protection(residency_ms, scale, progress), after_ms)


class EvictionPlan(NamedTuple):
    """Victims that are enough, and the slots that they and the free GPUs make."""

    victims: list[Job]
    slots: list[Slot]


Evict: TypeAlias = Callable[[View, Trial, Job, Shape, frozenset[str]], EvictionPlan | None]


@dataclass(frozen=True, slots=True)
class Policy:
    """The four hooks of a scheduler; each is pure, each may be replaced alone."""

    name: str
    rank: Callable[[View], Iterable[Job]]
    allot: Callable[[View, Job], Shape]
    place: Callable[[Trial, Shape, Avoid], list[Slot]]
    evict: Evict
