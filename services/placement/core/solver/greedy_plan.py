"""Greedy's plan of a view, as far as it is about jobs of the window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import place
from services.placement.core.round.plan import Plan
from services.placement.core.solver.instance import Reservation, RoundPlan, Start
from services.placement.core.solver.window import Candidate, Window


def plan_of_window(
    trial: Trial, window: Window, greedy: Plan, victims: Mapping[str, int]
) -> RoundPlan:
    """Return greedy's starts, reservations and stops; `victims`: job id -> number."""
    number = {candidate.job.job_id: index for index, candidate in enumerate(window.candidates)}
    mark = len(trial.log)
    starts = []
    for assignment in greedy.assignments:
        slots = tuple(assignment.slots)
        # The window reserves for jobs whose victims stop before it knows what others take, so it
        # may have reserved slots of greedy's plan.
        if assignment.job.job_id in number and trial.board.are_free(slots):
            trial.take(slots)
            starts.append(Start(number[assignment.job.job_id], slots))
    by: dict[str, list[Job]] = {}
    for eviction in greedy.evictions:
        by.setdefault(eviction.by.job_id, []).append(eviction.job)
    reservations: list[Reservation] = []
    stops: list[int] = []
    for job_id, evicted in by.items():
        candidate = window.candidates[number[job_id]] if job_id in number else None
        if candidate is None or not may_stop(candidate, evicted, victims):
            continue
        if nodes := reserve_freed_slots(trial, candidate, evicted):
            reservations.append(Reservation(number[job_id], nodes))
            stops += [victims[job.job_id] for job in evicted]
    trial.rollback(mark)
    return RoundPlan(tuple(starts), tuple(reservations), tuple(stops))


def reserve_freed_slots(
    trial: Trial, candidate: Candidate, evicted: Iterable[Job]
) -> tuple[tuple[str, int], ...]:
    """Free the victims' slots on the trial; return the candidate's workers by node, () if it does
    not fit even then."""
    for job in evicted:
        trial.give(slots_of(job))
    shape = candidate.shape._replace(max_workers=candidate.shape.min_workers)
    slots = place(trial, shape, candidate.avoid)
    return tuple(Counter(slot.node_id for slot in slots).items())


def may_stop(candidate: Candidate, victims: Iterable[Job], known: Mapping[str, int]) -> bool:
    offered = {job.job_id for job in candidate.victims if job.job_id in known}
    return all(job.job_id in offered for job in victims)
