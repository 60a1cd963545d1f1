"""One placement round: in order of rank, best fit, passing over what does not fit.

`plan` is the seam of every other planner: it takes a view and proposes, and the view is as before.
"""

from __future__ import annotations

from services.placement.core.board import Draft
from services.placement.core.easy import Head, head_of
from services.placement.core.fit import Avoid, Failures, could_hold, keep, place
from services.placement.core.preempt import evict
from services.placement.core.reasons import tell
from services.placement.core.reserve import claim, reserve
from services.placement.core.shape import SPOT_TIER, Shape, Slot
from services.placement.core.state import Job
from services.placement.core.view import Eviction, Placing, Plan, Policy, View

LEASES_PER_ROUND = 1500
"""A record of the ledger has its bounds; the next round goes on."""
EVICTIONS_PER_ROUND = 8
"""Jobs that may make others stop; the next round goes on."""
SEARCHES_PER_ROUND = 32
"""Each may look at every running job."""
UNRANKED = float("inf")


def rank(view: View) -> list[Job]:
    """Who has made others stop; then by class, and in a class: the one that waited too long, the
    ranked by score, the rest as they were submitted."""
    scores, claims, oldest = view.scores, view.claims, view.oldest

    def key(job: Job) -> tuple[bool, int, bool, float, int, str]:
        name = job.job_id
        score = scores.get(name)
        advised = UNRANKED if score is None else -score
        return name not in claims, job.tier, name != oldest, advised, job.submitted_at, name

    return sorted(view.waiting.values(), key=key)


def allot(view: View, job: Job) -> Shape:
    """As asked for; an elastic job takes as many workers as fit in its range."""
    return job.shape


GREEDY = Policy("best_fit", rank, allot, place, evict)


def plan(view: View, policy: Policy = GREEDY) -> Plan:
    draft = Draft(view.board)
    try:
        return Round(view, policy, draft).run()
    finally:
        draft.rollback()


class Round:
    """The working memory of one plan."""

    def __init__(self, view: View, policy: Policy, draft: Draft) -> None:
        self.view = view
        self.policy = policy
        self.draft = draft
        self.plan = Plan(waiting=len(view.waiting))
        self.failures = Failures()
        self.hopeless = Failures()
        self.blocked: list[tuple[int, Job]] = []
        self.kept: list[Slot] = []
        self.keepers: set[str] = set()
        self.taken: set[str] = set()
        self.head: Head | None = None
        self.searches = 0
        self.evicted = 0
        self.leases = 0

    def run(self) -> Plan:
        for position, job in enumerate(self.policy.rank(self.view)):
            if job.not_before > self.view.now:
                self.plan.again(job.not_before)
            elif self.head and self.view.mode == "strict":
                self.blocked.append((position, job))
            elif not self.consider(position, job):
                self.plan.unfinished = True
                break
        tell(
            self.view, self.draft, self.plan, self.blocked, self.kept, self.keepers, self.head
        )  # fmt: skip
        return self.plan

    def consider(self, position: int, job: Job) -> bool:
        """Place it or hold it; False: it fits, but the round is as long as it may be."""
        shape = self.policy.allot(self.view, job)
        mark = len(self.draft.log)
        slots = self.find(job, shape)
        if not slots:
            self.blocked.append((position, job))
            self.hold(job, shape)
            return True
        if self.leases and self.leases + len(slots) > LEASES_PER_ROUND:
            self.draft.rollback(mark)
            return False
        self.leases += len(slots)
        left = self.draft.board.nodes[slots[0].node_id].whole
        self.plan.places.append(Placing(job, slots, position, left))
        return True

    def find(self, job: Job, shape: Shape) -> list[Slot]:
        avoid: Avoid = self.avoided(job, shape)
        head = self.head
        if head and head.nodes and head.delayed_by(job, self.view.now, self.view.time_scale):
            avoid = head.nodes.union(avoid)
        if self.failures.covers(shape, avoid):
            return []
        slots = self.policy.place(self.draft, shape, avoid)
        if not slots:
            self.failures.add(shape, avoid)
        return slots

    def avoided(self, job: Job, shape: Shape) -> tuple[str, ...]:
        """Nodes that failed it are left out as long as the others could ever do."""
        if job.avoid and could_hold(self.draft.board, shape, job.avoid) >= shape.min_workers:
            return job.avoid
        return ()

    def hold(self, job: Job, shape: Shape) -> None:
        """What becomes free is kept for a job that made others stop, or waited too long."""
        kept: list[Slot] = []
        if job.job_id in self.view.claims:
            kept = claim(self.view, self.draft, job, shape)
        if not kept and job.tier < SPOT_TIER:
            kept = self.make_room(job, shape)
        if not kept and job.job_id == self.view.oldest:
            kept = reserve(self.draft, shape, self.avoided(job, shape))
        if kept:
            self.kept += kept
            self.keepers.add(job.job_id)
        if self.head is None and self.view.mode != "skip":
            self.head = self.lead(job, shape, bool(kept))

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

    def is_out_of_turn(self, job: Job) -> bool:
        """Its rank says nothing of those after it, who may have more victims than it has."""
        return job.job_id in self.view.claims or job.job_id == self.view.oldest

    def look_again(self, job: Job) -> None:
        expiry = self.view.victims.next_for(job)
        if expiry is not None:
            self.plan.again(expiry)
