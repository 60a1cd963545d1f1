"""One placement round: in order of rank, best fit, passing over what does not fit.

`plan` is the seam of every other planner: it takes a view and proposes, and the view is as before.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.moves.defragment import (
    GATHERS_PER_ROUND,
    TRIES_PER_ROUND,
    Home,
    gather,
    homes_of,
    may_gather,
)
from services.placement.core.pool.board import Draft
from services.placement.core.pool.queue import Kin, least_ms
from services.placement.core.pool.shape import SPOT_TIER, Shape, Slot
from services.placement.core.pool.state import Job
from services.placement.core.round.easy import Head, head_of
from services.placement.core.round.evict import evict
from services.placement.core.round.fit import Avoid, Failures, could_hold, keep, place, too_few
from services.placement.core.round.reasons import Blocked, tell
from services.placement.core.round.reserve import claim, reserve
from services.placement.core.round.view import Eviction, Placing, Plan, Policy, View, walk_of

LEASES_PER_ROUND = 1500
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
    return (view.waiting[job_id] for job_id in walk_of(view))


def allot(view: View, job: Job) -> Shape:
    """As asked for; an elastic job takes as many workers as fit in its range."""
    return job.shape


GREEDY = Policy("best_fit", rank, allot, place, evict)


def plan(view: View, policy: Policy = GREEDY, spared: frozenset[str] = frozenset()) -> Plan:
    """`spared`: jobs that make nobody stop this time."""
    draft = Draft(view.board)
    try:
        return Round(view, policy, draft, spared).run()
    finally:
        draft.rollback()


class Round:
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
        self.walk = walk_of(view)
        self.spent: set[Kin] = set()
        """Groups of which nobody else starts, or makes others stop, in this round."""
        self.blocked: list[Job] = []
        self.kept: list[Slot] = []
        self.keepers: set[str] = set()
        self.taken: set[str] = set()
        self.head: Head | None = None
        self.searches = 0
        self.evicted = 0
        self.gathered = 0
        self.gather_tries = 0
        self.homes: list[Home] | None = None
        self.scattered: set[Shape] = set()
        """Shapes for which no moves make room."""
        self.leases = 0

    def run(self) -> Plan:
        for job_id in self.walk:
            job = self.view.waiting[job_id]
            if job.not_before > self.view.now:
                self.plan.again(job.not_before)
            elif self.is_hopeless():
                self.pass_over(job)
            elif not self.consider(job):
                self.plan.unfinished = True
                break
        tell(self.view, self.draft, self.plan, self.told())
        return self.plan

    def told(self) -> Blocked:
        return Blocked(self.walk, self.blocked, self.kept, self.keepers, self.head)

    def is_hopeless(self) -> bool:
        """Nothing comes of the job at hand."""
        return self.walk.kin in self.spent or (self.head is not None and self.view.mode == "strict")

    def pass_over(self, job: Job) -> None:
        """The next in line are noted; behind them whole groups are left out."""
        if not self.note(job):
            self.walk.drop()

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
            if is_last and not stops_others and self.walk.kin:
                self.spent.add(self.walk.kin)
            return True
        if self.leases and self.leases + len(slots) > LEASES_PER_ROUND:
            self.draft.rollback(mark)
            return False
        self.leases += len(slots)
        left = self.draft.board.nodes[slots[0].node_id].whole
        position = self.walk.position(job.entry(self.view.scores))
        self.plan.places.append(Placing(job, slots, position, left))
        return True

    def find(self, job: Job, shape: Shape) -> tuple[list[Slot], bool]:
        """Slots; and if there are none, whether nobody of its group will find any."""
        avoid: Avoid = self.avoided(job, shape)
        head = self.head
        if not (head and head.delayed_by(job, self.view.now, self.view.time_scale)):
            return self.attempt(shape, avoid), True
        slots = self.attempt(shape, head.nodes.union(avoid) if avoid else head.nodes)
        return slots, bool(slots) or self.is_last_of_its_kin(head, shape, avoid)

    def attempt(self, shape: Shape, avoid: Avoid) -> list[Slot]:
        if too_few(self.draft.board, shape):
            return []
        if self.failures.covers(shape, avoid):
            return []
        slots = self.policy.place(self.draft, shape, avoid)
        if not slots:
            self.failures.add(shape, avoid)
        return slots

    def is_last_of_its_kin(self, head: Head, shape: Shape, avoid: Avoid) -> bool:
        """Each of them would delay the head, or none fits even where it may not."""
        kin = self.walk.kin
        if kin is None or head.delays(least_ms(kin.bucket), self.view.now):
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
        kept: list[Slot] = []
        stopped = self.evicted + self.gathered
        if job.job_id in self.view.claims:
            kept = claim(self.view, self.draft, job, shape)
        if not kept and job.tier < SPOT_TIER and job.job_id not in self.spared and not self.head:
            kept = self.make_room(job, shape) or self.gather(job, shape)
        if not kept and job.job_id == self.view.oldest:
            kept = reserve(self.draft, shape, self.avoided(job, shape))
        if kept:
            self.kept += kept
            self.keepers.add(job.job_id)
        if self.head is None and self.view.mode != "skip" and self.could_ever_fit(shape):
            self.head = self.lead(job, shape, bool(kept))
        return self.evicted + self.gathered > stopped

    def could_ever_fit(self, shape: Shape) -> bool:
        """Nobody waits behind a job that the pool, as it is, could not hold if it were empty."""
        return could_hold(self.draft.board, shape, ()) >= shape.min_workers

    def lead(self, job: Job, shape: Shape, has_kept: bool) -> Head:
        """The head of the line; what was kept for it is all the reservation it needs."""
        if has_kept or self.view.mode == "strict":
            return Head(job.job_id, None)
        avoid = self.avoided(job, shape)
        return head_of(self.view, self.draft, job, shape, avoid, self.plan.places)

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
        return keep(self.draft, found.slots)

    def gather(self, job: Job, shape: Shape) -> list[Slot]:
        """What others leave that move together; see `defragment`."""
        if self.is_out_of_turn(job) or shape in self.scattered:
            return []
        if self.gathered == GATHERS_PER_ROUND or self.gather_tries == TRIES_PER_ROUND:
            return []
        if not may_gather(self.view, self.draft, shape):
            return []
        self.gather_tries += 1
        if self.homes is None:
            self.homes = homes_of(self.view)
        starts = {slot.node_id for placing in self.plan.places for slot in placing.slots}
        found = gather(self.draft, self.homes, job, shape, frozenset(self.taken | starts))
        if found is None:
            self.scattered.add(shape)
            return []
        self.gathered += 1
        for moving in found.moves:
            self.taken.add(moving.job.job_id)
            self.draft.take(moving.slots)
        self.plan.moves += found.moves
        return keep(self.draft, found.slots)

    def is_out_of_turn(self, job: Job) -> bool:
        """Its rank says nothing of those after it, who may have more victims than it has."""
        return job.job_id in self.view.claims or job.job_id == self.view.oldest

    def look_again(self, job: Job) -> None:
        expiry = self.view.victims.next_for(job)
        if expiry is not None:
            self.plan.again(expiry)
