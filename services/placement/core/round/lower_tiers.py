"""The jobs that yield to a higher tier, sorted once per round and only as far as it is needed."""

from __future__ import annotations

from collections.abc import Mapping

from services.placement.core.pool.job import Job
from services.placement.core.round.protection import guarantee_end_ms


class LowerTiers:
    """Spot jobs, which yield to all others, and preemptible ones, which yield to a higher class.

    None is inside its guarantee.
    """

    def __init__(
        self, jobs: Mapping[str, Job], tiers: Mapping[int, int], now: int, time_scale: float
    ) -> None:
        """`tiers`: number of jobs of each, so that no job is looked at where none yields."""
        self._jobs = jobs
        self._count = tiers
        self._now = now
        self._time_scale = time_scale
        self._by_tier: dict[int, list[Job]] | None = None
        self._guaranteed: dict[int, int] = {}
        """Tier -> ms when the first guarantee in it ends."""
        self._sorted: dict[int, list[Job]] = {}
        self._below: dict[int, list[int]] = {}

    def below(self, tier: int) -> list[int]:
        """Return the tiers behind this one in which some job yields."""
        if tier not in self._below:
            self._below[tier] = (
                [lower for lower in self._group_jobs() if lower > tier]
                if self.holds_any_below(tier)
                else []
            )
        return self._below[tier]

    def holds_any_below(self, tier: int) -> bool:
        """Return whether any job of a tier behind this one has GPUs, protected or not."""
        return any([lower > tier and count for lower, count in self._count.items()])

    def jobs_of(self, tier: int) -> list[Job]:
        """Return the jobs of the tier that yield: least lost work first, ties by size and id."""
        if tier not in self._sorted:
            now, scale = self._now, self._time_scale
            self._sorted[tier] = sorted(
                self._group_jobs()[tier],
                key=lambda job: (job.lost_work_s(now, scale), job.gpus, job.job_id),
            )
        return self._sorted[tier]

    def guarantee_ends(self, tier: int) -> list[int]:
        """Return the ms when the first guarantee of each tier behind this one ends."""
        self.below(tier)
        return [end for lower, end in self._guaranteed.items() if lower > tier]

    def _group_jobs(self) -> dict[int, list[Job]]:
        if self._by_tier is None:
            self._by_tier = {}
            for job in self._jobs.values():
                if job.phase == "running" or job.phase == "placed":
                    self._add_job(job, self._by_tier)
        return self._by_tier

    def _add_job(self, job: Job, by_tier: dict[int, list[Job]]) -> None:
        """Add a job to its tier, or note when its guarantee ends; it begins with the start."""
        if not (job.spec.spot or job.spec.preemptible):
            return
        end = guarantee_end_ms(job, self._time_scale)
        if end is None:
            return
        if end > self._now:
            self._guaranteed[job.tier] = min(end, self._guaranteed.get(job.tier, end))
            return
        by_tier.setdefault(job.tier, []).append(job)
