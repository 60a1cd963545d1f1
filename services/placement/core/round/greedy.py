"""The greedy planner of a round: in order of rank, best fit, passing over what does not fit.

`plan` is the seam of every other planner: it takes a view and returns a plan; the view stays as it
was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from services.placement.core.pool.board import could_hold
from services.placement.core.pool.job import Job
from services.placement.core.pool.queue import EquivalenceClass, least_ms
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.round.defer import DeferralSearch
from services.placement.core.round.defragment import DefragmentationSearch
from services.placement.core.round.easy import QueueHead, head_of
from services.placement.core.round.evict import EvictionSearch, evict
from services.placement.core.round.fit import Avoid, nodes_to_avoid, place
from services.placement.core.round.plan import Assignment, Plan
from services.placement.core.round.reasons import PassedOver, report_holds
from services.placement.core.round.reserve import node_order, reserve_freed, reserve_roomiest
from services.placement.core.round.slot_search import SlotSearch
from services.placement.core.round.view import Policy, View, scan_of

ALLOCATIONS_PER_ROUND = 1500
"""A record of the ledger has its bounds; the next round goes on."""
BLOCKED_NOTED = 8
"""Jobs next in the queue whose hold reason is checked in each round; that of jobs behind them is
checked once, and again when the pool's nodes have changed."""


def rank(view: View) -> Iterator[Job]:
    """Yield the whole queue, best first, lazily."""
    return (view.waiting[job_id] for job_id in scan_of(view))


def allot(view: View, job: Job) -> Shape:
    """Return the shape as submitted; `complete.py` lets elastic jobs grow beyond it."""
    return job.shape


NO_WAITS: Mapping[str, int] = MappingProxyType({})

GREEDY = Policy("best_fit", rank, allot, place, evict)


def plan(
    view: View,
    policy: Policy = GREEDY,
    spared: frozenset[str] = frozenset(),
    waits: Mapping[str, int] = NO_WAITS,
) -> Plan:
    """Return greedy's plan of the view; `spared`: jobs that stop no others this time; `waits`: jobs
    that do not start before faster GPUs are free, and the ms when that is expected.
    """
    with Trial(view.board) as trial:
        return RoundPlanner(view, policy, trial, spared, waits).run()


class RoundPlanner:
    """Builds one plan: the queue scan with what it has taken, reserved and tried so far."""

    def __init__(
        self,
        view: View,
        policy: Policy,
        trial: Trial,
        spared: frozenset[str] = frozenset(),
        waits: Mapping[str, int] = NO_WAITS,
    ) -> None:
        self.view = view
        self.waits = waits
        self.spared = spared
        self.policy = policy
        self.trial = trial
        self.plan = Plan(waiting=len(view.waiting), planner=policy.name)
        self.slots = SlotSearch(trial, policy.place)
        self.evictions = EvictionSearch(view, trial, self.plan, policy.evict)
        self.defragmentations = DefragmentationSearch(view, trial, self.plan)
        self.deferrals = DeferralSearch(view, trial, self.plan)
        self.scan = scan_of(view)
        self.exhausted: set[EquivalenceClass] = set()
        """Classes of which no more jobs start, or stop others, in this round."""
        self.blocked: list[Job] = []
        self.reserved: list[Slot] = []
        self.reserved_for: set[str] = set()
        self.head: QueueHead | None = None
        self.allocations = 0

    def run(self) -> Plan:
        for job_id in self.scan:
            job = self.view.waiting[job_id]
            if job.not_before > self.view.now:
                self.plan.repeat_at(job.not_before)
            elif job_id in self.waits:
                self.plan.repeat_at(self.waits[job_id])
                self.note(job)
            elif self.is_hopeless():
                self.pass_over(job)
            elif not self.consider(job):
                self.plan.first_blocked = self.plan.first_blocked or job
                self.plan.unfinished = True
                break
        report_holds(self.view, self.trial, self.plan, self.passed_over())
        return self.plan

    def passed_over(self) -> PassedOver:
        return PassedOver(
            self.scan, self.blocked, self.reserved, self.reserved_for, self.head, self.waits
        )

    def is_hopeless(self) -> bool:
        """Return whether the job at hand can neither start nor stop others."""
        if self.exhausted and self.scan.equivalence_class in self.exhausted:
            return True
        return self.head is not None and self.view.queue_mode == "strict"

    def pass_over(self, job: Job) -> None:
        """Note a job that does not start; behind the first few the rest of its group is skipped."""
        if not self.note(job):
            self.scan.drop()

    def note(self, job: Job) -> bool:
        """Note the job if it is among the next in the queue, and return whether it is."""
        if len(self.blocked) == BLOCKED_NOTED:
            return False
        self.blocked.append(job)
        self.plan.first_blocked = self.blocked[0]
        return True

    def consider(self, job: Job) -> bool:
        """Place the job or hold it; return False if it fits but the round is full."""
        shape = self.policy.allot(self.view, job)
        mark = len(self.trial.log)
        slots, is_last = self.find_slots(job, shape)
        if not slots:
            self.note(job)
            stops_others = self.hold(job, shape)
            if is_last and not stops_others and self.scan.equivalence_class:
                self.exhausted.add(self.scan.equivalence_class)
            return True
        if self.allocations and self.allocations + len(slots) > ALLOCATIONS_PER_ROUND:
            self.trial.rollback(mark)
            return False
        self.allocations += len(slots)
        left = self.trial.board.nodes[slots[0].node_id].whole
        position = self.scan.position(job.queue_key(self.view.scores))
        self.plan.assignments.append(Assignment(job, slots, position, left))
        return True

    def find_slots(self, job: Job, shape: Shape) -> tuple[list[Slot], bool]:
        """Return slots; if there are none, also whether no job of its class will get any."""
        avoid: Avoid = nodes_to_avoid(self.trial.board, job, shape)
        head = self.head
        if not (head and head.delayed_by(job, self.view.now, self.view.time_scale)):
            return self.slots.place(shape, avoid), True
        slots = self.slots.place(shape, head.nodes.union(avoid) if avoid else head.nodes)
        return slots, bool(slots) or self.is_last_of_its_class(head, shape, avoid)

    def is_last_of_its_class(self, head: QueueHead, shape: Shape, avoid: Avoid) -> bool:
        """Return whether each job of the class would delay the head, or none fits anywhere at
        all.
        """
        equivalence_class = self.scan.equivalence_class
        if equivalence_class is None or head.delays(
            least_ms(equivalence_class.bucket), self.view.now
        ):
            return True
        return not self.slots.has_room(shape, avoid)

    def hold(self, job: Job, shape: Shape) -> bool:
        """Reserve slots for a job that stops others, or has waited too long.

        Return whether it stops others now; behind a head that has a reservation no job does.
        """
        reserved: list[Slot] = []
        served = self.evictions.served + self.defragmentations.served
        if job.job_id in self.view.reservations:
            reserved = reserve_freed(self.view, self.trial, job, shape)
        if (
            not reserved
            and not self.head
            and job.job_id not in self.spared
            and self.view.victims.ever_any_for(job)
        ):
            reserved = self.evictions.make_room(job, shape)
            if job.spec.measures is None:
                reserved = reserved or self.defragmentations.make_room(job, shape)
            if not reserved and self.blocked and self.blocked[-1] is job:
                self.deferrals.note(job, shape)
        if job.job_id == self.view.overdue.job_id:
            if self.view.overdue.lapses_at_ms is not None:
                self.plan.repeat_at(self.view.overdue.lapses_at_ms)
            if not reserved and not shape.nodes:
                avoid = nodes_to_avoid(self.trial.board, job, shape)
                order = node_order(self.view, self.plan.assignments)
                reserved = reserve_roomiest(self.trial, shape, avoid, order)
        if reserved:
            self.reserved += reserved
            self.reserved_for.add(job.job_id)
        if self.head is None and self.view.queue_mode != "skip" and self.could_ever_fit(shape):
            self.head = self.lead(job, shape, bool(reserved))
        return self.evictions.served + self.defragmentations.served > served

    def could_ever_fit(self, shape: Shape) -> bool:
        """Return whether the pool could hold the gang if it were empty; else no job waits behind
        it.

        None waits behind one that measures nodes.
        """
        return not shape.nodes and could_hold(self.trial.board, shape, ()) >= shape.min_workers

    def lead(self, job: Job, shape: Shape, has_reservation: bool) -> QueueHead:
        """Return the job as head of the queue; with slots reserved it needs no expected start."""
        if has_reservation or self.view.queue_mode == "strict":
            return QueueHead(job.job_id, None)
        avoid = nodes_to_avoid(self.trial.board, job, shape)
        return head_of(self.view, self.trial, job, shape, avoid, self.plan.assignments)
