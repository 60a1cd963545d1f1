"""The victims of a job: as few as possible, the cheapest first; few such jobs in one round."""

from __future__ import annotations

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import probe_anywhere
from services.placement.core.round.plan import Plan
from services.placement.core.round.slot_search import Failures
from services.placement.core.round.view import Evict, EvictionPlan, View

EVICTIONS_PER_ROUND = 8
"""Jobs that may make others stop; the next round goes on."""
SEARCHES_PER_ROUND = 32
"""Searches for victims; each may look at every running job."""


class EvictionSearch:
    """The searches for victims in one round, with the needs for which there are not enough."""

    def __init__(self, view: View, trial: Trial, plan: Plan, evict: Evict) -> None:
        self._view = view
        self._trial = trial
        self._plan = plan
        self._evict = evict
        self._hopeless = Failures()
        """Needs for which the victims of a tier are not enough."""
        self._searches = 0
        self.served = 0
        """Jobs for which others stop."""

    def make_room(self, job: Job, shape: Shape) -> list[Slot]:
        """Stop victims and reserve what they leave; no slots if they are not enough."""
        victims = self._view.victims
        if not victims.any_for(job) or self._hopeless.covers(shape, job.tier):
            self._repeat_later(job)
            return []
        if self.served == EVICTIONS_PER_ROUND:
            self._plan.unfinished = True
            return []
        if self._searches == SEARCHES_PER_ROUND:
            return []
        self._searches += 1
        eviction = self._evict(self._view, self._trial, job, shape, self._plan.stopped_jobs())
        if eviction is None:
            if not self._view.is_out_of_turn(job) and job.spec.measures is None:
                # Such jobs say nothing of those behind them, which may have more victims.
                self._hopeless.add(shape, job.tier)
            self._repeat_later(job)
            return []
        self.served += 1
        self._plan.evictions += [victims.eviction(victim, job) for victim in eviction.victims]
        return self._trial.reserve(eviction.slots)

    def _repeat_later(self, job: Job) -> None:
        """Request another round when the next victim is no longer protected."""
        expiry = self._view.victims.next_for(job)
        if expiry is not None:
            self._plan.repeat_at(expiry)


def evict(
    view: View, trial: Trial, job: Job, shape: Shape, taken: frozenset[str]
) -> EvictionPlan | None:
    """Return victims of which each is needed; None when even all of them are not enough.

    The trial is left as it was: victims keep their GPUs until their stop is reported.
    """
    victims = view.victims.of(job)
    if taken:
        victims = [victim for victim in victims if victim.job_id not in taken]
    if are_too_few(trial, shape, victims):
        return None
    mark = len(trial.log)
    try:
        return spare_victims(trial, shape, job, shortlist(trial, shape, job, victims))
    finally:
        trial.rollback(mark)


def are_too_few(trial: Trial, shape: Shape, victims: list[Job]) -> bool:
    """Return whether fewer GPUs would be free than the gang needs, wherever they are, without them
    all.
    """
    if shape.milli != GPU or shape.nodes:
        return False
    short = shape.min_workers * shape.gpus - trial.board.free_of(shape.types)
    for victim in victims:
        if short <= 0:
            break
        for allocation in victim.allocations.values():
            short -= len(allocation.slot.gpus)
    return short > 0


def shortlist(trial: Trial, shape: Shape, job: Job, victims: list[Job]) -> list[Job]:
    """Return the first victims that are enough together; empty if all of them are not.

    The number of victims doubles with each try.
    """
    stopped: list[Job] = []
    while len(stopped) < len(victims):
        for victim in victims[len(stopped) : 2 * len(stopped) + 1]:
            trial.give(slots_of(victim))
            stopped.append(victim)
        if probe_anywhere(trial, shape, job):
            return stopped
    return []


def spare_victims(trial: Trial, shape: Shape, job: Job, stopped: list[Job]) -> EvictionPlan | None:
    """Return the victims without which the job does not fit, and its slots.

    The victims that lose most are tried first: one that is not needed is not stopped.
    """
    if not stopped:
        return None
    needed: list[Job] = []
    for victim in reversed(stopped):
        trial.take(slots_of(victim))
        if not probe_anywhere(trial, shape, job):
            trial.give(slots_of(victim))
            needed.append(victim)
    return EvictionPlan(needed, probe_anywhere(trial, shape, job)) if needed else None
