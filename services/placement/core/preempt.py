"""Who must make room for a job of a higher class: as few as possible, the cheapest first."""

from __future__ import annotations

from services.placement.core.board import Draft
from services.placement.core.fit import place
from services.placement.core.shape import SPOT_TIER, Shape, Slot
from services.placement.core.state import Job
from services.placement.core.view import Evicted, View

LOST_WORK_CAP_S = 604_800.0


def yields_to(victim: Job, job: Job) -> bool:
    """Spot jobs yield to any other job, the rest to a higher class if they are preemptible."""
    if job.tier >= SPOT_TIER or victim.tier <= job.tier:
        return False
    return victim.phase in ("placed", "running") and (victim.spec.spot or victim.spec.preemptible)


def guaranteed_until(view: View, victim: Job) -> int:
    """ms; a guarantee runs from the go, and before it not at all."""
    wall_ms = round(victim.spec.guaranteed_s * 1000 / view.time_scale)
    return (victim.started_at or view.now) + wall_ms


def lost_work_s(view: View, victim: Job) -> float:
    """Cluster seconds since its last checkpoint: what it will do again."""
    if not victim.started_at:
        return 0.0
    ran_s = view.cluster_s(victim.started_at)
    every_s = victim.spec.checkpoint_interval_s
    return min(ran_s % every_s if every_s else ran_s, LOST_WORK_CAP_S)


def evict(
    view: View, draft: Draft, job: Job, shape: Shape, taken: frozenset[str]
) -> Evicted | None:
    """Victims without any of which the job would not fit; None when all of them are no help.

    The draft is left as it was: victims keep their GPUs until their stop is reported.
    """
    costs = candidates(view, job, taken)
    mark = len(draft.log)
    try:
        return spare(draft, shape, job, shortlist(draft, shape, job, costs))
    finally:
        draft.rollback(mark)


def candidates(view: View, job: Job, taken: frozenset[str]) -> list[Job]:
    """Spot first, then the lowest class, then the least lost work."""
    found = [
        victim
        for victim in view.jobs.values()
        if yields_to(victim, job)
        and victim.job_id not in taken
        and guaranteed_until(view, victim) <= view.now
    ]
    found.sort(key=lambda v: (-v.tier, lost_work_s(view, v), v.gpus, v.job_id))
    return found


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


def spare(draft: Draft, shape: Shape, job: Job, given: list[Job]) -> Evicted | None:
    """Let off every victim that is not needed, the dearest first."""
    if not given:
        return None
    needed: list[Job] = []
    for victim in reversed(given):
        draft.take(slots_of(victim))
        if not probe(draft, shape, job):
            draft.give(slots_of(victim))
            needed.append(victim)
    return Evicted(needed, probe(draft, shape, job)) if needed else None


def probe(draft: Draft, shape: Shape, job: Job) -> list[Slot]:
    mark = len(draft.log)
    try:
        return place(draft, shape, job.avoid) or place(draft, shape, ())
    finally:
        draft.rollback(mark)


def slots_of(job: Job) -> list[Slot]:
    return [lease.slot for lease in job.leases.values()]


def next_expiry(view: View, job: Job) -> int | None:
    """ms when the next guarantee ends that protects a victim from this job."""
    ends = [
        end
        for victim in view.jobs.values()
        if yields_to(victim, job)
        and victim.started_at
        and (end := guaranteed_until(view, victim)) > view.now
    ]
    return min(ends) if ends else None
