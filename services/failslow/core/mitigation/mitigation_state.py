"""The open faults of each gang, what they have cost so far, and when a plan for them is due.

An episode lasts from the first open fault of a gang until none is open. Loss is counted by the
worst of them. A fault that comes and goes costs as one that stays: where the same node is slow
again soon after a recovery, the next episode goes on with the loss of the last one. The due time
follows from the episode alone, so that a lane wakes once, and finds the same plan after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from services.failslow.core.health.score import PartHealth
from services.failslow.core.mitigation.costs import CostBook
from services.failslow.core.mitigation.deficits import DeficitBook
from services.failslow.core.mitigation.durations import DurationBook
from services.failslow.core.mitigation.levels import BY_NAME
from services.failslow.core.mitigation.migration import FollowedMigration
from services.failslow.core.mitigation.plan import GangLoss, MitigationPlan, OpenFault, Planner
from services.failslow.core.mitigation.policy import lost_share
from services.failslow.core.mitigation.redistribute import Division
from shared.contracts.mitigation import DeclinedReason, LevelName

APPLICABLE = (BY_NAME["redistribute"], BY_NAME["migrate"])
"""The levels that help a worker of which no more is known than that it computes slowly."""
WITHOUT_ROOM = (*APPLICABLE, BY_NAME["restart"])
"""The levels once a migration had no room: a restart on the same nodes may help too."""
RESTARTED_KEPT = 10_000
"""Jobs that a plan has restarted, the oldest of which are forgotten."""
FIRST_LOOK_S = 5.0
LOOKS = 20
LOOK_GROWTH = 1.5
"""Times at which a plan may fall due, up to three hours after the last change."""
LULL_S = 900.0
"""Cluster s after a recovery in which a fault of the same node goes on with the loss before it."""


@dataclass(slots=True)
class OpenPlan:
    """A plan that waits for an operator, or was approved."""

    plan_id: str
    job_id: str
    tenant: str
    attempt: int
    plan: MitigationPlan
    tries: int = 0
    """How often it was applied: more than once where there was no room."""
    tried_s: float = 0.0
    """Cluster time of the last one."""
    cordons: bool = False
    by: Literal["operator", "automatic"] = "operator"
    """An operator, or the pool."""

    @property
    def is_applied(self) -> bool:
        return self.tries > 0


@dataclass(frozen=True, slots=True)
class Lull:
    """An episode that ended as its gang recovered."""

    attempt: int
    node_ids: tuple[str, ...]
    lost_s: float
    at_s: float

    def lost_before(self, attempt: int, node_id: str, now_s: float) -> float:
        """Return the loss with which a fault of the node goes on; 0 for one of its own."""
        is_same = attempt == self.attempt and node_id in self.node_ids
        return self.lost_s if is_same and now_s - self.at_s <= LULL_S else 0.0


@dataclass(slots=True)
class Episode:
    """`at_s` is the time of the last change; times are cluster seconds."""

    tenant: str
    attempt: int
    began_s: float
    at_s: float
    lost_s: float = 0.0
    earlier_s: float = 0.0
    """The part of the loss that was before the last recovery."""
    node_ids: dict[str, None] = field(default_factory=dict)
    faults: dict[str, OpenFault] = field(default_factory=dict)
    began_by_fault_s: dict[str, float] = field(default_factory=dict)
    planned: tuple[LevelName, ...] = ()
    due_s: float | None = None
    may_restart: bool = False
    division: Division | None = None
    """Of the gang's micro-batches, by what it reported with its newest fault."""
    is_stated: bool = False
    """An event says which plan is due next."""

    def loss_at(self, now_s: float, deficit_s: float = 0.0) -> GangLoss:
        worst = max((fault.slowdown for fault in self.faults.values()), default=0.0)
        lost_s = self.lost_s + max(0.0, now_s - self.at_s) * lost_share(worst)
        elapsed_s = now_s - self.began_s
        return GangLoss(elapsed_s, lost_s, deficit_s, self.planned, self.earlier_s)


@dataclass(slots=True)
class MitigationState:
    """Episodes by job, plans by id, and the memory that outlives both."""

    episodes: dict[str, Episode] = field(default_factory=dict)
    lulls: dict[str, tuple[Lull, ...]] = field(default_factory=dict)
    """Of the watched jobs, by job: at most one of each node."""
    plans: dict[str, OpenPlan] = field(default_factory=dict)
    plans_so_far: int = 0
    durations: DurationBook = field(default_factory=DurationBook)
    health: dict[str, PartHealth] = field(default_factory=dict)
    gpu_health: dict[str, dict[int, PartHealth]] = field(default_factory=dict)
    """Of GPUs that suspicions or problems have named, by node and number."""
    costs: CostBook = field(default_factory=CostBook)
    deficits: DeficitBook = field(default_factory=DeficitBook)
    migrations: dict[str, FollowedMigration] = field(default_factory=dict)
    """Migrations and restarts of which the end is not accounted yet, by job."""
    restarted: dict[str, None] = field(default_factory=dict)
    """Jobs that a plan has restarted: once each, as a fault that is there again is none of a
    program."""

    def open_fault(
        self,
        job_id: str,
        tenant: str,
        attempt: int,
        fault: OpenFault,
        now_s: float,
        division: Division | None = None,
        gpu: int | None = None,
    ) -> None:
        episode = self.episodes.get(job_id)
        if episode is None:
            lost_s = self._lost_before(job_id, attempt, fault.node_id, now_s)
            episode = Episode(tenant, attempt, now_s, now_s, lost_s, lost_s)
            self.episodes[job_id] = episode
        self._advance(episode, now_s)
        episode.node_ids[fault.node_id] = None
        self.deficits.pause(job_id, now_s)
        episode.faults[fault.fault_id] = fault
        episode.began_by_fault_s[fault.fault_id] = now_s
        episode.division = division
        self._schedule(job_id)
        gpus = () if gpu is None else (gpu,)
        for part in self.parts_with(fault.node_id, gpus):
            part.note_fault(fault.fault_id, fault.slowdown, now_s, tenant)

    def parts_with(self, node_id: str, gpus: Sequence[int]) -> list[PartHealth]:
        """Return the health of a node and of these GPUs of it, which are known from now on."""
        of_gpus = self.gpu_health.setdefault(node_id, {}) if gpus else {}
        own = [self.health.setdefault(node_id, PartHealth())]
        return own + [of_gpus.setdefault(gpu, PartHealth()) for gpu in gpus]

    def parts_of(self, node_id: str) -> list[tuple[int | None, PartHealth]]:
        """Return the health of a node, as that of no GPU, and of its GPUs, as far as known."""
        own = self.health.get(node_id)
        gpus = self.gpu_health.get(node_id, {})
        return ([(None, own)] if own is not None else []) + sorted(gpus.items())

    def note_well(self, node_id: str, job_id: str, now_s: float) -> None:
        """Note that a job measured a node, with its GPUs, to be as fast as its like."""
        for _, part in self.parts_of(node_id):
            part.note_well(now_s, job_id)

    def close_fault(self, job_id: str, fault_id: str, now_s: float, *, ended: bool) -> None:
        """Note the end of a fault; not `ended` where it may go on unseen."""
        episode = self.episodes.get(job_id)
        if episode is None or fault_id not in episode.faults:
            return
        self._advance(episode, now_s)
        del episode.faults[fault_id]
        self.durations.note(now_s - episode.began_by_fault_s.pop(fault_id), ended=ended)
        if episode.faults:
            self._schedule(job_id)
        else:
            del self.episodes[job_id]
            self.deficits.resume(job_id, now_s)
            nodes = tuple(episode.node_ids)
            lulls = self._lulls_beside(job_id, nodes, now_s)
            if ended:
                lulls = (*lulls, Lull(episode.attempt, nodes, episode.lost_s, now_s))
            if lulls:
                self.lulls[job_id] = lulls
            else:
                self.lulls.pop(job_id, None)

    def _lost_before(self, job_id: str, attempt: int, node_id: str, now_s: float) -> float:
        """Return the loss with which a fault of a node goes on, the largest of those it follows."""
        lulls = self.lulls.get(job_id, ())
        return max((lull.lost_before(attempt, node_id, now_s) for lull in lulls), default=0.0)

    def _lulls_beside(self, job_id: str, nodes: tuple[str, ...], now_s: float) -> tuple[Lull, ...]:
        """Return those of other nodes that a fault may still go on from."""
        return tuple(
            lull
            for lull in self.lulls.get(job_id, ())
            if now_s - lull.at_s <= LULL_S and not {*nodes} & {*lull.node_ids}
        )

    def end_gang(self, job_id: str, now_s: float) -> None:
        """Note that an attempt has ended; its episode is closed already."""
        self.lulls.pop(job_id, None)
        self.deficits.pause(job_id, now_s)

    def lost_by_s(self, job_id: str, fault_id: str, now_s: float) -> float:
        """Return what the faults of a gang have cost since the last recovery, where this is the
        last open one of them.
        """
        episode = self.episodes.get(job_id)
        if episode is None or list(episode.faults) != [fault_id]:
            return 0.0
        return episode.loss_at(now_s).lost_s - episode.earlier_s

    def assume(self, migration_s: float) -> None:
        """Take over the cost of a migration that the pool's settings assume."""
        self.costs.assumed_s["migrate"] = migration_s
        for job_id in self.episodes:
            self._schedule(job_id)

    def take_back(self, node_id: str, fault_id: str, now_s: float) -> None:
        """Note that a fault was a false alarm."""
        for _, part in self.parts_of(node_id):
            part.take_back(fault_id, now_s)

    def note_plan(self, plan: OpenPlan, now_s: float) -> None:
        self.plans_so_far += 1
        self.plans[plan.plan_id] = plan
        episode = self.episodes.get(plan.job_id)
        if episode is not None:
            self._advance(episode, now_s)
            episode.planned += (plan.plan.level,)
            self._schedule(plan.job_id)

    def offer_restart(self, job_id: str, now_s: float) -> None:
        """Let a restart be planned for a gang that could not leave its slow nodes."""
        episode = self.episodes.get(job_id)
        if episode is None or episode.may_restart or job_id in self.restarted:
            return
        self._advance(episode, now_s)
        episode.may_restart = True
        self._schedule(job_id)

    def note_restart(self, job_id: str) -> None:
        self.restarted[job_id] = None
        while len(self.restarted) > RESTARTED_KEPT:
            del self.restarted[next(iter(self.restarted))]

    def end_plan(self, plan_id: str) -> None:
        self.plans.pop(plan_id, None)

    def due_plan(self, job_id: str) -> MitigationPlan | None:
        """Return the plan of an episode as of its due time."""
        episode = self.episodes[job_id]
        if episode.due_s is None:
            return None
        return self._plan(job_id, episode.due_s)

    def declined(self, job_id: str) -> list[tuple[LevelName, DeclinedReason]]:
        """Return the levels that will not be planned as things are, each with the reason."""
        episode = self.episodes[job_id]
        deficit_s = self.deficits.at(job_id, episode.at_s)
        loss = episode.loss_at(episode.at_s, deficit_s)
        return self._planner(episode).declined(
            tuple(episode.faults.values()), loss, episode.division
        )

    def _planner(self, episode: Episode) -> Planner:
        return Planner(WITHOUT_ROOM if episode.may_restart else APPLICABLE, self.costs)

    def _plan(self, job_id: str, now_s: float) -> MitigationPlan | None:
        episode = self.episodes[job_id]
        faults, deficit_s = tuple(episode.faults.values()), self.deficits.at(job_id, now_s)
        planner = self._planner(episode)
        loss, survival = episode.loss_at(now_s, deficit_s), self.durations.survival()
        return planner.plan(faults, loss, survival, episode.division)

    def _schedule(self, job_id: str) -> None:
        """Find the first time from the last change on at which a plan is worth its cost."""
        episode = self.episodes[job_id]
        time_s, step_s = episode.at_s, FIRST_LOOK_S
        episode.due_s, episode.is_stated = None, False
        for _ in range(LOOKS):
            if self._plan(job_id, time_s) is not None:
                episode.due_s = time_s
                return
            time_s, step_s = time_s + step_s, step_s * LOOK_GROWTH

    def _advance(self, episode: Episode, now_s: float) -> None:
        episode.lost_s = episode.loss_at(now_s).lost_s
        episode.at_s = max(episode.at_s, now_s)
