"""The victims of a job: as few as possible, the cheapest first."""

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
    """Return victims of which each is needed; None when even all of them are not enough.

    The draft is left as it was: victims keep their GPUs until their stop is reported.
    """
    victims = [v for v in view.victims.of(job) if v.job_id not in taken]
    mark = len(draft.log)
    try:
        return spare_victims(draft, shape, job, shortlist(draft, shape, job, victims))
    finally:
        draft.rollback(mark)


def shortlist(draft: Draft, shape: Shape, job: Job, victims: list[Job]) -> list[Job]:
    """Return the beginning of the list that is enough, doubled at each try; empty if none is."""
    stopped: list[Job] = []
    while len(stopped) < len(victims):
        for victim in victims[len(stopped) : 2 * len(stopped) + 1]:
            draft.give(slots_of(victim))
            stopped.append(victim)
        if probe(draft, shape, job):
            return stopped
    return []


def spare_victims(draft: Draft, shape: Shape, job: Job, stopped: list[Job]) -> EvictionPlan | None:
    """Spare every victim that is not needed, the dearest first."""
    if not stopped:
        return None
    needed: list[Job] = []
    for victim in reversed(stopped):
        draft.take(slots_of(victim))
        if not probe(draft, shape, job):
            draft.give(slots_of(victim))
            needed.append(victim)
    return EvictionPlan(needed, probe(draft, shape, job)) if needed else None


def probe(draft: Draft, shape: Shape, job: Job) -> list[Slot]:
    """Return slots for the job as the draft stands, avoided nodes last; nothing stays taken."""
    mark = len(draft.log)
    try:
        return place(draft, shape, job.avoid) or place(draft, shape, ())
    finally:
        draft.rollback(mark)
