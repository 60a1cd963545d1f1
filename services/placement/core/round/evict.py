"""Who must make room for a job: as few as possible, the cheapest first."""

from __future__ import annotations

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.draft import Draft
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.round.fit import place
from services.placement.core.round.view import EvictionPlan, View


def evict(
    view: View, draft: Draft, job: Job, shape: Shape, taken: frozenset[str]
) -> EvictionPlan | None:
    """Victims without any of which the job would not fit; None when all of them are no help.

    The draft is left as it was: victims keep their GPUs until their stop is reported.
    """
    victims = [v for v in view.victims.of(job) if v.job_id not in taken]
    mark = len(draft.log)
    try:
        return spare(draft, shape, job, shortlist(draft, shape, job, victims))
    finally:
        draft.rollback(mark)


def shortlist(draft: Draft, shape: Shape, job: Job, victims: list[Job]) -> list[Job]:
    """A beginning of the list that is enough; each look doubles it. Empty: none is."""
    given: list[Job] = []
    while len(given) < len(victims):
        for victim in victims[len(given) : 2 * len(given) + 1]:
            draft.give(slots_of(victim))
            given.append(victim)
        if probe(draft, shape, job):
            return given
    return []


def spare(draft: Draft, shape: Shape, job: Job, given: list[Job]) -> EvictionPlan | None:
    """Let off every victim that is not needed, the dearest first."""
    if not given:
        return None
    needed: list[Job] = []
    for victim in reversed(given):
        draft.take(slots_of(victim))
        if not probe(draft, shape, job):
            draft.give(slots_of(victim))
            needed.append(victim)
    return EvictionPlan(needed, probe(draft, shape, job)) if needed else None


def probe(draft: Draft, shape: Shape, job: Job) -> list[Slot]:
    mark = len(draft.log)
    try:
        return place(draft, shape, job.avoid) or place(draft, shape, ())
    finally:
        draft.rollback(mark)
