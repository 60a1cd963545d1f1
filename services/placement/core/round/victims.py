"""Jobs that may be stopped, sorted once per round and only as far as it is needed."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import SPOT_TIER
from shared.contracts.checkpoint import wall_ms

UNRANKED = float("-inf")


def protected_ms(job: Job, min_residency_ms: int) -> int:
    """Return the wall ms from the job's start before which rank does not stop it.

    The rule: a job may be stopped by rank at `now` only if

        now - started_at >= max(min_residency_ms, debt_ms)

    where `debt_ms` is the cost of its last preemption: the work that it lost (since its last
    checkpoint, `shared.contracts.checkpoint`) plus the restart that this start
    paid (`simulated.restart_s`; 0 if the spec has none). It is 0 for a job that was never
    preempted while it ran, and of a job whose program failed and which began anew. So each start
    after a preemption does at least what that preemption cost, and no two jobs can stop each
    other for ever without either getting on. All in whole ms of the pool's clock.
    """
    return max(min_residency_ms, job.debt_ms)


class RankRules(NamedTuple):
    """The rules by which a job may stop others of its own class."""

    scores: Mapping[str, float]
    """Of the last ranking: waiting jobs and those on GPUs; higher goes first."""
    preempt_margin: float
    min_residency_ms: int
    largest_gpus: float
    """Size of the largest gang that is stopped."""
    defragment_after_ms: int | None = None
    """From a job's start until it may migrate for a larger one; None: it never does."""


class Outranked(NamedTuple):
    """A running job that rank may stop; tuples compare in the order of choice."""

    score: float
    job_id: str
    job: Job


class Victims:
    """Jobs on GPUs that may be stopped, for each job that waits.

    To a higher tier yield spot jobs (to all others) and preemptible ones (to a higher class). With
    `by_rank` also preemptible ones that run, to a job of their own tier whose score is higher by
    more than the margin, see `protected_ms`. None inside its guarantee, and none to a spot job.
    """

    def __init__(
        self,
        jobs: Mapping[str, Job],
        tiers: Mapping[int, int],
        now: int,
        time_scale: float,
        by_rank: RankRules | None = None,
    ) -> None:
        """`tiers`: number of jobs of each, so that no job is looked at where none yields."""
        self._jobs = jobs
        self._count = tiers
        self._now = now
        self._time_scale = time_scale
        self._by_rank = by_rank
        self._open: dict[int, list[Job]] | None = None
        self._guaranteed: dict[int, int] = {}
        self._sorted: dict[int, list[Job]] = {}
        self._behind: dict[int, list[int]] = {}
        self._bars: dict[int, float] = {}
        self._stoppable: dict[int, list[Outranked]] = {}
        self._protected: dict[int, list[tuple[float, int]]] = {}

    def of(self, job: Job) -> list[Job]:
        """Return the job's victims in the order of choice.

        Spot first, then the lowest class, in it the least lost work; its own tier comes last,
        the lowest score first (jobs without one before all), ties by job id.
        """
        if job.tier >= SPOT_TIER:
            return []
        victims: list[Job] = []
        for lower in sorted(self._lower(job.tier), reverse=True):
            victims += self._in_order(lower)
        return victims + [outranked.job for outranked in self._outranked(job)]

    def any_for(self, job: Job) -> bool:
        """Whether any job may be stopped for this one."""
        if job.tier >= SPOT_TIER:
            return False
        return bool(self._lower(job.tier) or self._outranked(job))

    def next_for(self, job: Job) -> int | None:
        """Return the ms when the next job that is protected for a while may be stopped."""
        if job.tier >= SPOT_TIER:
            return None
        self._lower(job.tier)
        ends = [end for lower, end in self._guaranteed.items() if lower > job.tier]
        bar = self._bar(job)
        if bar is not None:
            self._peers(job.tier, bar)
            margin = self._by_rank.preempt_margin if self._by_rank else 0.0
            ends += [
                end for score, end in self._protected.get(job.tier, ()) if score + margin < bar
            ]
        return min(ends, default=None)

    def lost_work_s(self, job: Job) -> float:
        """Return the cluster seconds since its last checkpoint, which it will do again."""
        return job.lost_work_s(self._now, self._time_scale)

    @property
    def defragment_after_ms(self) -> int | None:
        return self._by_rank.defragment_after_ms if self._by_rank else None

    def movable_from_ms(self, job: Job) -> float:
        """Return the ms from which a running job may migrate so that a larger one fits."""
        if self.defragment_after_ms is None or not (job.spec.preemptible or job.spec.spot):
            return math.inf
        return max(self._protected_until(job), job.started_at + self.defragment_after_ms)

    def score_of(self, job: Job) -> float | None:
        return self._by_rank.scores.get(job.job_id) if self._by_rank else None

    def _lower(self, tier: int) -> list[int]:
        """Return the tiers behind this one in which some job yields."""
        if tier not in self._behind:
            is_any = any(lower > tier and count for lower, count in self._count.items())
            self._behind[tier] = (
                [lower for lower in self._tiers() if lower > tier] if is_any else []
            )
        return self._behind[tier]

    def _tiers(self) -> dict[int, list[Job]]:
        if self._open is None:
            self._open = {}
            for job in self._jobs.values():
                if job.phase == "running" or job.phase == "placed":
                    self._note(job, self._open)
        return self._open

    def _note(self, job: Job, tiers: dict[int, list[Job]]) -> None:
        """Note a job by tier, or when its guarantee ends; the guarantee begins with the start."""
        if not (job.spec.spot or job.spec.preemptible):
            return
        end = self._guarantee_end(job)
        if end is None:
            return
        if end > self._now:
            self._guaranteed[job.tier] = min(end, self._guaranteed.get(job.tier, end))
            return
        tiers.setdefault(job.tier, []).append(job)

    def _guarantee_end(self, job: Job) -> int | None:
        """Return the ms when the guarantee ends; None if it has not begun."""
        if not job.spec.guaranteed_s:
            return 0
        if not job.started_at:
            return None
        return job.started_at + wall_ms(job.spec.guaranteed_s, self._time_scale)

    def _in_order(self, tier: int) -> list[Job]:
        if tier not in self._sorted:
            jobs = self._tiers()[tier]
            self._sorted[tier] = sorted(jobs, key=lambda j: (self.lost_work_s(j), j.gpus, j.job_id))
        return self._sorted[tier]

    def _bar(self, job: Job) -> float | None:
        """Return the score below which a job yields to this one; None: no job does."""
        return self._by_rank.scores.get(job.job_id) if self._by_rank else None

    def _outranked(self, job: Job) -> list[Outranked]:
        bar = self._bar(job)
        if bar is None or self._by_rank is None:
            return []
        margin = self._by_rank.preempt_margin
        peers = self._peers(job.tier, bar)
        return peers[: bisect_left(peers, bar, key=lambda outranked: outranked.score + margin)]

    def _peers(self, tier: int, bar: float) -> list[Outranked]:
        """Return the jobs of the tier below the bar that rank may stop now, in order.

        Those that it may stop later are noted as protected. In a scan the first bar of a tier is
        the highest one, so the list holds for all bars after it.
        """
        if bar > self._bars.get(tier, UNRANKED):
            self._bars[tier] = bar
            self._protected[tier] = protected = []
            self._stoppable[tier] = stoppable = []
            for job, score in self._below(tier, bar):
                end = self._protected_until(job)
                if end > self._now:
                    protected.append((score, end))
                else:
                    stoppable.append(Outranked(score, job.job_id, job))
            stoppable.sort()
        return self._stoppable.get(tier, [])

    def _below(self, tier: int, bar: float) -> Iterator[tuple[Job, float]]:
        """Yield the running jobs that yield to a job of that score, with their own scores."""
        assert self._by_rank is not None
        scores, margin, largest = (
            self._by_rank.scores,
            self._by_rank.preempt_margin,
            self._by_rank.largest_gpus,
        )
        for name, job in self._jobs.items():
            score = scores.get(name, UNRANKED)
            leads = score + margin < bar and job.tier == tier and job.gpus <= largest
            if leads and job.phase == "running" and job.spec.preemptible:
                yield job, score

    def _protected_until(self, job: Job) -> int:
        assert self._by_rank is not None
        residency_end = job.started_at + protected_ms(job, self._by_rank.min_residency_ms)
        return max(residency_end, self._guarantee_end(job) or 0)
