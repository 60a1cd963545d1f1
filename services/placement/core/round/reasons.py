"""Hold reasons: why a job stays in the queue, published only when the reason changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from services.placement.core.lifecycle import ends
from services.placement.core.pool.board import could_hold
from services.placement.core.pool.job import Job, ProtectionRule
from services.placement.core.pool.overdue import LACKS_NODES
from services.placement.core.pool.queue import QueueScan
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.round.easy import QueueHead
from services.placement.core.round.fit import fits_now, would_hold
from services.placement.core.round.plan import Deferral, Hold, Plan
from services.placement.core.round.slot_search import SlotSearch
from services.placement.core.round.view import View
from shared.contracts.construct import construct
from shared.contracts.node_problems import DISK_FULL
from shared.contracts.placement import HoldReason, JobHeld, JobStopDeferred
from shared.ledger.decider import Decision

HELD_PER_ROUND = 512
"""A record of the ledger has its bounds; the next round goes on."""
DEFERRED_MOST = 16
"""Victims of one waiting job whose stops are recorded as put off."""
ALONE = ("no_capacity", *LACKS_NODES)
"""Reasons that are not about other jobs in the queue."""


class PassedOver(NamedTuple):
    """The jobs that a round passed over, and what stood in their way."""

    scan: QueueScan
    first: list[Job]
    """The next in the queue, best first."""
    reserved: list[Slot]
    reserved_for: set[str]
    head: QueueHead | None
    """The job that all others in the queue are behind, if there is one."""
    waits: Mapping[str, int] = MappingProxyType({})
    """Jobs that wait for faster GPUs by a solver's plan, and the ms when they are expected; or for
    the next proposal of the pool's scheduler."""
    waits_for: Literal["faster_at", "allotted_at"] = "faster_at"
    chosen_nodes: Mapping[str, str] = MappingProxyType({})
    """Jobs that wait for what stops on nodes that the pool's scheduler chose, and their names."""


def report_holds(view: View, trial: Trial, plan: Plan, blocked: PassedOver) -> None:
    """Add new hold reasons to the plan, best first; reserved slots are given back before."""
    jobs = (
        blocked.first
        if plan.unfinished
        else [*blocked.first, *unreported_jobs(view, plan, blocked)]
    )
    if not jobs:
        return
    trial.give(blocked.reserved)
    deferrals = {deferral.by.job_id: deferral for deferral in plan.deferrals}
    reasons = HoldReasons(view, trial, blocked, deferrals)
    for job in jobs:
        if job.job_id in deferrals:
            reason = reasons.of(job)
        elif reasons.is_unchanged(job) or (reason := reasons.of(job)) == job.hold_reason:
            continue
        if len(plan.holds) == HELD_PER_ROUND:
            plan.unfinished = True
            return
        plan.holds.append(reasons.make_hold(job, reason))


def unreported_jobs(view: View, plan: Plan, blocked: PassedOver) -> list[Job]:
    """Return the jobs behind the first ones whose reason was not published, or may differ."""
    if not view.unreported:
        return []
    known = {job.job_id for job in blocked.first}
    known.update(assignment.job.job_id for assignment in plan.assignments)
    jobs = [view.waiting[name] for name in view.unreported if name not in known]
    jobs = [job for job in jobs if job.not_before <= view.now]
    return sorted(jobs, key=lambda job: job.queue_key(view.scores))


class HoldReasons:
    """Hold reasons of one round, remembered by shape: most blocked jobs look alike."""

    def __init__(
        self,
        view: View,
        trial: Trial,
        blocked: PassedOver,
        deferrals: Mapping[str, Deferral] = MappingProxyType({}),
    ) -> None:
        """`deferrals`: stops that are put off, by the id of the waiting job."""
        self.view = view
        self.trial = trial
        self.blocked = blocked
        self.deferrals = deferrals
        self.known: dict[tuple[Shape, bool], HoldReason] = {}
        self.counts: dict[tuple[Shape, bool], int] = {}
        self.slots = SlotSearch(trial)

    def is_unchanged(self, job: Job) -> bool:
        """Return whether the published reason holds: with no job in the way only nodes change
        it.
        """
        is_unobstructed = not (self.blocked.reserved or self.blocked.head)
        return (
            is_unobstructed and job.hold_reason in ALONE and job.job_id not in self.view.unreported
        )

    def of(self, job: Job) -> HoldReason:
        """Return the job's reason; the head and jobs with a reservation wait for GPUs only."""
        head = self.blocked.head
        waits_for_gpus = job.job_id in self.blocked.reserved_for or (
            head is not None and head.job_id == job.job_id
        )
        key = (job.shape, waits_for_gpus)
        reason = self.known.get(key)
        if reason is None:
            reason = self.known[key] = self.find(job.shape, waits_for_gpus)
        return reason

    def find(self, shape: Shape, waits_for_gpus: bool) -> HoldReason:
        board = self.trial.board
        ever = could_hold(board, shape, ())
        if ever < shape.min_workers:
            full = would_hold((board.nodes[n].kind for n in full_nodes(self.view)), shape)
            if ever + full >= shape.min_workers:
                return "disk_full"
            away = would_hold((board.nodes[n].kind for n in cordoned_nodes(self.view)), shape)
            return "draining" if ever + full + away >= shape.min_workers else "no_node_fits"
        return "no_capacity" if waits_for_gpus else self.behind(shape)

    def behind(self, shape: Shape) -> HoldReason:
        head = self.blocked.head
        if head and self.view.queue_mode == "strict":
            return "behind_head"
        if not (self.blocked.reserved or head) or not self.slots.has_room(shape, ()):
            return "no_capacity"
        return "reserved_for_head" if head and head.nodes else "behind_reservation"

    def make_hold(self, job: Job, reason: HoldReason) -> Hold:
        shape, board = job.shape, self.trial.board
        workers = self.count(shape, reason in LACKS_NODES)
        short = max(0, shape.min_workers - workers) * shape.worker_milli / GPU
        detail: dict[str, float | str] = {
            "position": float(self.blocked.scan.position(job.queue_key(self.view.scores))),
            "waiting": float(len(self.view.waiting)),
            "workers": float(shape.min_workers),
            "workers_that_fit": float(min(workers, shape.min_workers)),
            "free_gpus": float(board.free_of(shape.types)),
        }
        head = self.blocked.head
        if head and reason in ("behind_head", "reserved_for_head"):
            detail["head"] = head.job_id
            if head.at is not None:
                detail["shadow_at"] = float(head.at)
        if reason == "no_capacity":
            detail |= self.protection_of(job) | self.reservation_of(job)
        if (waits_until := self.blocked.waits.get(job.job_id)) is not None:
            detail[self.blocked.waits_for] = float(waits_until)
        if nodes := self.blocked.chosen_nodes.get(job.job_id):
            detail["chosen_nodes"] = nodes
        if (deferral := self.deferrals.get(job.job_id)) is not None:
            detail["protected_by"] = rule_of(deferral)
            detail["protected_until"] = float(deferral.until_ms)
            detail["deferred_stops"] = float(deferral.number)
        return Hold(job, reason, short, detail)

    def protection_of(self, job: Job) -> dict[str, float | str]:
        """Return until when, and by which rule, the jobs that this one outranks are protected."""
        rules = self.view.rank_rules
        if rules is None or rules.protection.progress is None:
            return {}
        if rules.is_paused:
            until_ms, rule = rules.opens_at_ms, "loss_budget"
        elif (peer := self.view.victims.first_protected(job)) is not None:
            until_ms, rule = peer.until_ms, peer.rule
        else:
            return {}
        known = {} if until_ms is None else {"protected_until": float(until_ms)}
        return {"protected_by": rule, **known}

    def reservation_of(self, job: Job) -> dict[str, float | str]:
        """Return until when GPUs are reserved for a job that waited too long, or what became of
        that.
        """
        view = self.view
        if job.job_id == view.overdue.job_id:
            lapses_at_ms = view.overdue.lapses_at_ms
            return {} if lapses_at_ms is None else {"reserved_until": float(lapses_at_ms)}
        until_ms = job.unreserved_until_ms
        if until_ms <= job.since:
            return {}
        detail: dict[str, float | str] = {"not_reserved_before": float(until_ms)}
        first = min(view.running.values(), key=lambda other: other.placed_at, default=None)
        if first and first.placed_at <= view.lapsed_from_ms:
            detail["outlasted_by"] = first.job_id
        return detail

    def count(self, shape: Shape, ever: bool) -> int:
        """Return how many workers fit now, or would fit on empty nodes (`ever`)."""
        workers = self.counts.get((shape, ever))
        if workers is None:
            board = self.trial.board
            workers = could_hold(board, shape, ()) if ever else fits_now(board, shape)
            self.counts[shape, ever] = workers
        return workers


def rule_of(deferral: Deferral) -> ProtectionRule:
    """Return the rule that most of its protected victims wait for; of equals the first by name."""
    rules = [rule for _, rule in deferral.victims]
    return min(rules, key=lambda rule: (-rules.count(rule), rule))


def cordoned_nodes(view: View) -> list[str]:
    nodes = view.board.nodes
    cordoned = [name for name in view.cordons if name in nodes and nodes[name].lost_at is None]
    return cordoned + [name for name in _untaken(view) if DISK_FULL not in nodes[name].problems]


def full_nodes(view: View) -> list[str]:
    """Return the nodes that a full disk alone keeps from new work."""
    nodes = view.board.nodes
    return [name for name in _untaken(view) if DISK_FULL in nodes[name].problems]


def _untaken(view: View) -> list[str]:
    """Return the nodes that a problem alone keeps from new work."""
    return [
        node.node_id
        for node in view.board.nodes.values()
        if not node.takes_work and node.lost_at is None and node.node_id not in view.cordons
    ]


def defer_stops(deferral: Deferral, stopped: frozenset[str]) -> Iterator[Decision]:
    """Yield one event for each of the first protected victims that this round does not stop."""
    going_on = [pair for pair in deferral.victims if pair[0].job_id not in stopped]
    for victim, rule in going_on[:DEFERRED_MOST]:
        event = construct(
            JobStopDeferred,
            job_id=victim.job_id,
            tenant=victim.tenant,
            attempt=victim.attempt,
            by_job_id=deferral.by.job_id,
            until=deferral.until_ms,
            rule=rule,
            victims=deferral.number,
        )
        yield ends.job_decision(victim, deferral.by.cause, event)


def hold_job(hold: Hold) -> Decision:
    """Return the decision that publishes the job's new hold reason."""
    job = hold.job
    event = construct(
        JobHeld,
        job_id=job.job_id,
        tenant=job.tenant,
        reason=hold.reason,
        short_gpus=hold.short_gpus,
        detail=hold.detail,
    )
    return ends.job_decision(job, job.cause, event)
