"""One placement round: in order of rank, best fit, passing over what does not fit.

`plan` is the seam of every other planner: it takes a view and proposes, and the view is as before.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.draft import Draft
from services.placement.core.pool.job import Job
from services.placement.core.pool.queue import EquivalenceClass, least_ms
from services.placement.core.pool.shape import SPOT_TIER, Shape, Slot
from services.placement.core.round.defragment import (
    DEFRAGMENTED_PER_ROUND,
    TRIES_PER_ROUND,
    NodeToEmpty,
    defragment,
    may_defragment,
    nodes_to_empty,
)
from services.placement.core.round.easy import QueueHead, head_of
from services.placement.core.round.evict import evict
from services.placement.core.round.fit import Avoid, Failures, could_hold, place, too_few
from services.placement.core.round.plan import Assignment, Eviction, Plan
from services.placement.core.round.reasons import PassedOver, tell
from services.placement.core.round.reserve import reserve_freed, reserve_roomiest
from services.placement.core.round.view import Policy, View, scan_of

ALLOCATIONS_PER_ROUND = 1500
"""A record of the ledger has its bounds; the next round goes on."""
EVICTIONS_PER_ROUND = 8
"""Jobs that may make others stop; the next round goes on."""
SEARCHES_PER_ROUND = 32
"""Each may look at every running job."""
BLOCKED_NOTED = 8
"""Jobs next in line whose reason to wait is looked at in each round; of those behind them only
once, and when the pool's nodes are others."""


def rank(view: View) -> Iterator[Job]:
    """The whole line, best first; who looks at the beginning pays for no more."""
    return (view.waiting[job_id] for job_id in scan_of(view))


def allot(view: View, job: Job) -> Shape:
    """As asked for; an elastic job takes as many workers as fit in its range."""
    return job.shape


GREEDY = Policy("best_fit", rank, allot, place, evict)


def plan(view: View, policy: Policy = GREEDY, spared: frozenset[str] = frozenset()) -> Plan:
    """`spared`: jobs that make nobody stop this time."""
    draft = Draft(view.board)
    try:
        return RoundPlanner(view, policy, draft, spared).run()
    finally:
        draft.rollback()


class RoundPlanner:
    """The working memory of one plan."""

    def __init__(
        self, view: View, policy: Policy, draft: Draft, spared: frozenset[str] = frozenset()
    ) -> None:
        self.view = view
        self.spared = spared
        self.policy = policy
        self.draft = draft
        self.plan = Plan(waiting=len(view.waiting))
        self.failures = Failures()
        self.hopeless = Failures()
        self.scan = scan_of(view)
        self.exhausted: set[EquivalenceClass] = set()
        """Groups of which nobody else starts, or makes others stop, in this round."""
        self.blocked: list[Job] = []
        self.reserved: list[Slot] = []
        self.reserved_for: set[str] = set()
        self.taken: set[str] = set()
        self.head: QueueHead | None = None
        self.searches = 0
        self.evicted = 0
        self.defragmented = 0
        self.defragment_tries = 0
        self.nodes_to_empty: list[NodeToEmpty] | None = None
        self.scattered: set[Shape] = set()
        """Shapes for which no moves make room."""
        self.allocations = 0

    def run(self) -> Plan:
        for job_id in self.scan:
            job = self.view.waiting[job_id]
            if job.not_before > self.view.now:
                self.plan.repeat_at(job.not_before)
            elif self.is_hopeless():
                self.pass_over(job)
            elif not self.consider(job):
                self.plan.unfinished = True
                break
        tell(self.view, self.draft, self.plan, self.told())
        return self.plan

    def told(self) -> PassedOver:
        return PassedOver(self.scan, self.blocked, self.reserved, self.reserved_for, self.head)

    def is_hopeless(self) -> bool:
        """Nothing comes of the job at hand."""
        return self.scan.equivalence_class in self.exhausted or (
            self.head is not None and self.view.mode == "strict"
        )

    def pass_over(self, job: Job) -> None:
        """The next in line are noted; behind them whole groups are left out."""
        if not self.note(job):
            self.scan.drop()

    def note(self, job: Job) -> bool:
        """Whether it is among the next in line."""
        if len(self.blocked) == BLOCKED_NOTED:
            return False
        self.blocked.append(job)
        return True

    def consider(self, job: Job) -> bool:
        """Place it or hold it; False: it fits, but the round is as long as it may be."""
        shape = self.policy.allot(self.view, job)
        mark = len(self.draft.log)
        slots, is_last = self.find(job, shape)
        if not slots:
            self.note(job)
            stops_others = self.hold(job, shape)
            if is_last and not stops_others and self.scan.equivalence_class:
                self.exhausted.add(self.scan.equivalence_class)
            return True
        if self.allocations and self.allocations + len(slots) > ALLOCATIONS_PER_ROUND:
            self.draft.rollback(mark)
            return False
        self.allocations += len(slots)
        left = self.draft.board.nodes[slots[0].node_id].whole
        position = self.scan.position(job.entry(self.view.scores))
        self.plan.assignments.append(Assignment(job, slots, position, left))
        return True

    def find(self, job: Job, shape: Shape) -> tuple[list[Slot], bool]:
        """Slots; and if there are none, whether nobody of its group will find any."""
        avoid: Avoid = self.avoided(job, shape)
        head = self.head
        if not (head and head.delayed_by(job, self.view.now, self.view.time_scale)):
            return self.attempt(shape, avoid), True
        slots = self.attempt(shape, head.nodes.union(avoid) if avoid else head.nodes)
        return slots, bool(slots) or self.is_last_of_its_class(head, shape, avoid)

    def attempt(self, shape: Shape, avoid: Avoid) -> list[Slot]:
        if too_few(self.draft.board, shape):
            return []
        if self.failures.covers(shape, avoid):
            return []
        slots = self.policy.place(self.draft, shape, avoid)
        if not slots:
            self.failures.add(shape, avoid)
        return slots

    def is_last_of_its_class(self, head: QueueHead, shape: Shape, avoid: Avoid) -> bool:
        """Each of them would delay the head, or none fits even where it may not."""
        equivalence_class = self.scan.equivalence_class
        if equivalence_class is None or head.delays(
            least_ms(equivalence_class.bucket), self.view.now
        ):
            return True
        mark = len(self.draft.log)
        fits = bool(self.attempt(shape, avoid))
        self.draft.rollback(mark)
        return not fits

    def avoided(self, job: Job, shape: Shape) -> tuple[str, ...]:
        """Nodes that failed it are left out as long as the others could ever do."""
        if job.avoid and could_hold(self.draft.board, shape, job.avoid) >= shape.min_workers:
            return job.avoid
        return ()

    def hold(self, job: Job, shape: Shape) -> bool:
        """What becomes free is kept for a job that made others stop, or waited too long.

        Returns whether it makes others stop now; behind a head that has a reservation nobody does.
        """
        reserved: list[Slot] = []
        stopped = self.evicted + self.defragmented
        if job.job_id in self.view.reservations:
            reserved = reserve_freed(self.view, self.draft, job, shape)
        if (
            not reserved
            and job.tier < SPOT_TIER
            and job.job_id not in self.spared
            and not self.head
        ):
            reserved = self.make_room(job, shape) or self.defragment(job, shape)
        if not reserved and job.job_id == self.view.oldest:
            reserved = reserve_roomiest(self.draft, shape, self.avoided(job, shape))
        if reserved:
            self.reserved += reserved
            self.reserved_for.add(job.job_id)
        if self.head is None and self.view.mode != "skip" and self.could_ever_fit(shape):
            self.head = self.lead(job, shape, bool(reserved))
        return self.evicted + self.defragmented > stopped

    def could_ever_fit(self, shape: Shape) -> bool:
        """Nobody waits behind a job that the pool, as it is, could not hold if it were empty."""
        return could_hold(self.draft.board, shape, ()) >= shape.min_workers

    def lead(self, job: Job, shape: Shape, has_kept: bool) -> QueueHead:
        """The head of the line; what was kept for it is all the reservation it needs."""
        if has_kept or self.view.mode == "strict":
            return QueueHead(job.job_id, None)
        avoid = self.avoided(job, shape)
        return head_of(self.view, self.draft, job, shape, avoid, self.plan.assignments)

    def make_room(self, job: Job, shape: Shape) -> list[Slot]:
        victims = self.view.victims
        if not victims.any_for(job) or self.hopeless.covers(shape, job.tier):
            self.look_again(job)
            return []
        if self.evicted == EVICTIONS_PER_ROUND:
            self.plan.unfinished = True
            return []
        if self.searches == SEARCHES_PER_ROUND:
            return []
        self.searches += 1
        found = self.policy.evict(self.view, self.draft, job, shape, frozenset(self.taken))
        if found is None:
            if not self.is_out_of_turn(job):
                self.hopeless.add(shape, job.tier)
            self.look_again(job)
            return []
        self.evicted += 1
        for victim in found.victims:
            self.taken.add(victim.job_id)
            lost_s = victims.lost_work_s(victim)
            scores = victims.score_of(victim), victims.score_of(job)
            self.plan.evictions.append(Eviction(victim, job, lost_s, *scores))
        return self.draft.reserve(found.slots)

    def defragment(self, job: Job, shape: Shape) -> list[Slot]:
        """What others leave that move together; see `defragment`."""
        if self.is_out_of_turn(job) or shape in self.scattered:
            return []
        if self.defragmented == DEFRAGMENTED_PER_ROUND or self.defragment_tries == TRIES_PER_ROUND:
            return []
        if not may_defragment(self.view, self.draft, shape):
            return []
        self.defragment_tries += 1
        if self.nodes_to_empty is None:
            self.nodes_to_empty = nodes_to_empty(self.view)
        starts = {slot.node_id for assignment in self.plan.assignments for slot in assignment.slots}
        found = defragment(
            self.draft, self.nodes_to_empty, job, shape, frozenset(self.taken | starts)
        )
        if found is None:
            self.scattered.add(shape)
            return []
        self.defragmented += 1
        for migration in found.migrations:
            self.taken.add(migration.job.job_id)
            self.draft.take(migration.slots)
        self.plan.migrations += found.migrations
        return self.draft.reserve(found.slots)

    def is_out_of_turn(self, job: Job) -> bool:
        """Its rank says nothing of those after it, who may have more victims than it has."""
        return job.job_id in self.view.reservations or job.job_id == self.view.oldest

    def look_again(self, job: Job) -> None:
        expiry = self.view.victims.next_for(job)
        if expiry is not None:
            self.plan.repeat_at(expiry)
