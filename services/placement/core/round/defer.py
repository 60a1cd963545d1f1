"""Stops by rank that are put off: the victims of a waiting job of which some are protected yet.

Nothing is reserved for such a job: when the last of them may be stopped, whoever leads then is
served. The search says which stops those are, for the events of both jobs.
"""

from __future__ import annotations

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Shape
from services.placement.core.pool.trial import Trial
from services.placement.core.round.evict import are_too_few, shortlist, spare_victims
from services.placement.core.round.peers import Protected
from services.placement.core.round.plan import Deferral, Plan
from services.placement.core.round.view import View

SEARCHES_PER_ROUND = 2
"""Each may look at every job that may be stopped, now or later."""


class DeferralSearch:
    """The searches of one round for stops that are put off."""

    def __init__(self, view: View, trial: Trial, plan: Plan) -> None:
        self._view = view
        self._trial = trial
        self._plan = plan
        rules = view.rank_rules
        self._left = SEARCHES_PER_ROUND if rules is not None and rules.records_deferrals else 0

    def note(self, job: Job, shape: Shape) -> None:
        """Note the stops for a job that nothing makes room for now; once until they are due."""
        if not self._left or job.deferred_until_ms > self._view.now:
            return
        protected = self._view.victims.protected_from(job)
        if not protected:
            return
        self._left -= 1
        deferral = self._find(job, shape, protected)
        if deferral is not None:
            self._plan.deferrals.append(deferral)

    def _find(self, job: Job, shape: Shape, protected: list[Protected]) -> Deferral | None:
        """Return the fewest victims that are enough, those that may be stopped first before all."""
        taken = self._plan.stopped_jobs()
        later = {peer.job_id: peer for peer in protected if peer.job_id not in taken}
        victims = [one for one in self._view.victims.of(job) if one.job_id not in taken]
        order = sorted(later.values(), key=lambda peer: (peer.until_ms, peer.job_id))
        victims += [self._view.running[peer.job_id] for peer in order]
        if are_too_few(self._trial, shape, victims):
            return None
        mark = len(self._trial.log)
        try:
            stopped = shortlist(self._trial, shape, job, victims)
            eviction = spare_victims(self._trial, shape, job, stopped)
        finally:
            self._trial.rollback(mark)
        if eviction is None:
            return None
        needed = [one for one in eviction.victims if one.job_id in later]
        if not needed:
            return None
        until_ms = max(later[one.job_id].until_ms for one in needed)
        rules = [(one, later[one.job_id].rule) for one in needed]
        return Deferral(job, rules, len(eviction.victims), until_ms)
