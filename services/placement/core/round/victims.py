"""The jobs on GPUs that may be stopped for each job that waits."""

from __future__ import annotations

from collections.abc import Mapping

from services.placement.core.lifecycle.gangs import restart_terms
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import SPOT_TIER
from services.placement.core.round.lower_tiers import LowerTiers
from services.placement.core.round.peers import Peers, Protected, RankRules
from services.placement.core.round.plan import Eviction


class Victims:
    """Jobs of lower tiers, and with `rules` also those that rank may stop in the same tier.

    No job is stopped for a spot job.
    """

    def __init__(
        self,
        jobs: Mapping[str, Job],
        tiers: Mapping[int, int],
        now: int,
        time_scale: float,
        rules: RankRules | None = None,
    ) -> None:
        """`tiers`: number of jobs of each."""
        self._jobs = jobs
        self._now = now
        self._time_scale = time_scale
        self._shows_costs = rules is not None and rules.protection.progress is not None
        self._scores: Mapping[str, float] = rules.scores if rules else {}
        self._lower = LowerTiers(jobs, tiers, now, time_scale)
        self._peers = Peers(jobs, rules, now) if rules else None

    def of(self, job: Job) -> list[Job]:
        """Return the job's victims in the order of choice.

        Spot first, then the lowest class, in it the least lost work; its own tier comes last,
        the lowest score first (jobs without one before all), ties by job id. A job that measures
        the nodes of another one stops that one or none.
        """
        if job.tier >= SPOT_TIER:
            return []
        if job.spec.measures is not None:
            return self._measured_by(job)
        victims: list[Job] = []
        for lower in sorted(self._lower.below(job.tier), reverse=True):
            victims += self._lower.jobs_of(lower)
        if self._peers:
            victims += [outranked.job for outranked in self._peers.outranked_by(job)]
        return victims

    def ever_any_for(self, job: Job) -> bool:
        """Return whether any job may be stopped for this one, now or once it is no longer
        protected.
        """
        if job.tier >= SPOT_TIER:
            return False
        return self._peers is not None or self._lower.holds_any_below(job.tier)

    def any_for(self, job: Job) -> bool:
        """Return whether any job may be stopped for this one."""
        if job.tier >= SPOT_TIER:
            return False
        if job.spec.measures is not None:
            return bool(self._measured_by(job))
        if self._lower.below(job.tier):
            return True
        return self._peers is not None and self._peers.outranks_any(job)

    def next_for(self, job: Job) -> int | None:
        """Return the ms when the next job that is protected for a while may be stopped."""
        if job.tier >= SPOT_TIER:
            return None
        ends = self._lower.guarantee_ends(job.tier)
        if self._peers:
            ends += [peer.until_ms for peer in self._peers.protected_from(job)]
        return min(ends, default=None)

    def protected_from(self, job: Job) -> list[Protected]:
        """Return the jobs of its own class that it outranks and may not stop yet."""
        if job.tier >= SPOT_TIER or not self._peers or job.spec.measures is not None:
            return []
        return self._peers.protected_from(job)

    def first_protected(self, job: Job) -> Protected | None:
        """Return the job of its own class that it may stop next, and the rule until then."""
        peers = self.protected_from(job)
        return min(peers, key=lambda peer: (peer.until_ms, peer.job_id), default=None)

    def eviction(self, victim: Job, by: Job) -> Eviction:
        """Return the eviction of a victim with its price, and both scores where rank may stop."""
        lost_work_s = victim.lost_work_s(self._now, self._time_scale)
        scores = self._scores.get(victim.job_id), self._scores.get(by.job_id)
        return Eviction(victim, by, lost_work_s, *scores, self._costs_of(victim))

    def _measured_by(self, job: Job) -> list[Job]:
        measured = self._jobs.get(job.spec.measures or "")
        if measured is None or measured.tier not in self._lower.below(job.tier):
            return []
        return [one for one in self._lower.jobs_of(measured.tier) if one is measured]

    def _costs_of(self, victim: Job) -> dict[str, float]:
        """Return the restart that the victim will pay, cluster s, and how often it started."""
        if not self._shows_costs:
            return {}
        return restart_terms(victim, self._time_scale)
