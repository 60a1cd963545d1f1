"""The jobs on GPUs that may be stopped for each job that waits."""

from __future__ import annotations

from collections.abc import Mapping

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import SPOT_TIER
from services.placement.core.round.lower_tiers import LowerTiers
from services.placement.core.round.peers import Peers, RankRules
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
        self._now = now
        self._time_scale = time_scale
        self._scores: Mapping[str, float] = rules.scores if rules else {}
        self._lower = LowerTiers(jobs, tiers, now, time_scale)
        self._peers = Peers(jobs, rules, now, time_scale) if rules else None

    def of(self, job: Job) -> list[Job]:
        """Return the job's victims in the order of choice.

        Spot first, then the lowest class, in it the least lost work; its own tier comes last,
        the lowest score first (jobs without one before all), ties by job id.
        """
        if job.tier >= SPOT_TIER:
            return []
        victims: list[Job] = []
        for lower in sorted(self._lower.below(job.tier), reverse=True):
            victims += self._lower.jobs_of(lower)
        if self._peers:
            victims += [outranked.job for outranked in self._peers.outranked_by(job)]
        return victims

    def any_for(self, job: Job) -> bool:
        """Whether any job may be stopped for this one."""
        if job.tier >= SPOT_TIER:
            return False
        if self._lower.below(job.tier):
            return True
        return bool(self._peers and self._peers.outranked_by(job))

    def next_for(self, job: Job) -> int | None:
        """Return the ms when the next job that is protected for a while may be stopped."""
        if job.tier >= SPOT_TIER:
            return None
        ends = self._lower.guarantee_ends(job.tier)
        if self._peers:
            ends += self._peers.protection_ends(job)
        return min(ends, default=None)

    def eviction(self, victim: Job, by: Job) -> Eviction:
        """Return the eviction of a victim with its price, and both scores where rank may stop."""
        lost_work_s = victim.lost_work_s(self._now, self._time_scale)
        scores = self._scores.get(victim.job_id), self._scores.get(by.job_id)
        return Eviction(victim, by, lost_work_s, *scores)
