"""Who could be made to stop, sorted once per round and only as far as somebody asks."""

from __future__ import annotations

from collections.abc import Mapping

from services.placement.core.shape import SPOT_TIER
from services.placement.core.state import Job

LOST_WORK_CAP_S = 604_800.0


class Victims:
    """Jobs on GPUs that yield to a higher tier: spot jobs to all others, the preemptible ones
    to a higher class, none of them inside its guarantee."""

    def __init__(self, jobs: Mapping[str, Job], now: int, time_scale: float) -> None:
        self._jobs = jobs
        self._now = now
        self._time_scale = time_scale
        self._open: dict[int, list[Job]] | None = None
        self._guaranteed: dict[int, int] = {}
        self._sorted: dict[int, list[Job]] = {}

    def of(self, tier: int) -> list[Job]:
        """Spot first, then the lowest class, then the least lost work."""
        if tier >= SPOT_TIER:
            return []
        found: list[Job] = []
        for lower in sorted(self._tiers(), reverse=True):
            if lower > tier:
                found += self._in_order(lower)
        return found

    def any_of(self, tier: int) -> bool:
        return tier < SPOT_TIER and any(lower > tier for lower in self._tiers())

    def next_of(self, tier: int) -> int | None:
        """ms when the next guarantee ends that protects somebody from this tier."""
        self._tiers()
        ends = [end for lower, end in self._guaranteed.items() if lower > tier]
        return min(ends) if ends and tier < SPOT_TIER else None

    def lost_work_s(self, job: Job) -> float:
        """Cluster seconds since its last checkpoint: what it will do again."""
        if not job.started_at:
            return 0.0
        ran_s = max(0, self._now - job.started_at) / 1000 * self._time_scale
        every_s = job.spec.checkpoint_interval_s
        return min(ran_s % every_s if every_s else ran_s, LOST_WORK_CAP_S)

    def _tiers(self) -> dict[int, list[Job]]:
        if self._open is None:
            self._open = {}
            for job in self._jobs.values():
                if job.phase == "running" or job.phase == "placed":
                    self._note(job, self._open)
        return self._open

    def _note(self, job: Job, tiers: dict[int, list[Job]]) -> None:
        """A guarantee runs from the go; before it nobody is past it."""
        spec = job.spec
        if not (spec.spot or spec.preemptible):
            return
        if spec.guaranteed_s:
            end = job.started_at + round(spec.guaranteed_s * 1000 / self._time_scale)
            if not job.started_at:
                return
            if end > self._now:
                self._guaranteed[job.tier] = min(end, self._guaranteed.get(job.tier, end))
                return
        tiers.setdefault(job.tier, []).append(job)

    def _in_order(self, tier: int) -> list[Job]:
        if tier not in self._sorted:
            jobs = self._tiers()[tier]
            self._sorted[tier] = sorted(jobs, key=lambda j: (self.lost_work_s(j), j.gpus, j.job_id))
        return self._sorted[tier]
