"""The running jobs that yield to a job of their own tier because of its rank."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from services.placement.core.pool.job import Job
from services.placement.core.round.protection import protected_until_ms

UNRANKED = float("-inf")


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


class Peers:
    """Preemptible jobs that run, for each waiting job whose score leads theirs by the margin.

    In a scan the first score of a tier is the highest one, so what is collected for it holds for
    all scores after it.
    """

    def __init__(
        self, jobs: Mapping[str, Job], rules: RankRules, now: int, time_scale: float
    ) -> None:
        self._jobs = jobs
        self._rules = rules
        self._now = now
        self._time_scale = time_scale
        self._highest: dict[int, float] = {}
        """Tier -> the highest score for which its jobs were collected."""
        self._stoppable: dict[int, list[Outranked]] = {}
        self._protected: dict[int, list[tuple[float, int]]] = {}
        """Tier -> (score, ms until which the job is protected)."""

    def outranked_by(self, job: Job) -> list[Outranked]:
        """Return the peers that the job may stop now, the lowest score first, ties by job id."""
        score = self._rules.scores.get(job.job_id)
        if score is None:
            return []
        self._collect(job.tier, score)
        stoppable, margin = self._stoppable.get(job.tier, []), self._rules.preempt_margin
        return stoppable[
            : bisect_left(stoppable, score, key=lambda outranked: outranked.score + margin)
        ]

    def protection_ends(self, job: Job) -> list[int]:
        """Return the ms until which each other peer is protected that the job outranks."""
        score = self._rules.scores.get(job.job_id)
        if score is None:
            return []
        self._collect(job.tier, score)
        margin = self._rules.preempt_margin
        return [end for own, end in self._protected.get(job.tier, ()) if own + margin < score]

    def _collect(self, tier: int, score: float) -> None:
        """Collect the jobs of the tier that yield to this score, or a lower one than before."""
        if score <= self._highest.get(tier, UNRANKED):
            return
        self._highest[tier] = score
        self._protected[tier] = protected = []
        self._stoppable[tier] = stoppable = []
        residency_ms = self._rules.min_residency_ms
        for job, own in self._outranked(tier, score):
            end = protected_until_ms(job, residency_ms, self._time_scale)
            if end > self._now:
                protected.append((own, end))
            else:
                stoppable.append(Outranked(own, job.job_id, job))
        stoppable.sort()

    def _outranked(self, tier: int, score: float) -> Iterator[tuple[Job, float]]:
        """Yield the running jobs that yield to a job of that score, with their own scores."""
        scores, margin, largest_gpus = (
            self._rules.scores,
            self._rules.preempt_margin,
            self._rules.largest_gpus,
        )
        for job_id, job in self._jobs.items():
            own = scores.get(job_id, UNRANKED)
            leads = own + margin < score and job.tier == tier and job.gpus <= largest_gpus
            if leads and job.phase == "running" and job.spec.preemptible:
                yield job, own
