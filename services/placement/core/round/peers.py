"""The running jobs that yield to a job of their own tier because of its rank."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from services.placement.core.pool.job import Job, ProtectionRule, StopWindow
from services.placement.core.round.progress import NEVER, price_of
from services.placement.core.round.protection import Protection, stop_price_s, window_at

UNRANKED = float("-inf")


class RankRules(NamedTuple):
    """The rules by which a job may stop others of its own class."""

    scores: Mapping[str, float]
    """Of the last ranking: waiting jobs and those on GPUs; higher goes first."""
    preempt_margin: float
    protection: Protection
    largest_gpus: float
    """Size of the largest gang that is stopped."""
    defragment_after_ms: int | None = None
    """From a job's start until it may migrate for a larger one; None: it never does."""
    is_paused: bool = False
    """The loss budget is spent: rank stops and migrates no job."""
    opens_at_ms: int | None = None
    """When GPU time in use has earned some of it back, if paused; None: not foreseeable."""
    price: float = 0.0
    """Weight of what a stop costs, at this fill of the loss budget; 0: none."""
    gittins_s: Mapping[str, float] = {}
    """Gittins ranks of jobs on GPUs, cluster s."""
    records_deferrals: bool = False
    """Whether stops of protected jobs are recorded as deferred."""


class Outranked(NamedTuple):
    """A running job that rank may stop; tuples compare in the order of choice."""

    score: float
    """With the price of the stop."""
    job_id: str
    job: Job


class Protected(NamedTuple):
    """A running job that rank may not stop yet."""

    score: float
    until_ms: int
    rule: ProtectionRule
    job_id: str


class TierPeers(NamedTuple):
    """The running jobs of one tier that yield to a score or a lower one."""

    highest: float
    """The score for which they were collected."""
    yielding: list[Outranked]
    """Those that may be stopped now, the lowest score first."""
    leads: list[float]
    """Score of each of them, with the margin: a job with a higher one may stop it."""
    protected: list[Protected]


class Peers:
    """Preemptible jobs that run, for each waiting job whose score leads theirs by the margin.

    In a scan the first score of a tier is the highest one, so what is collected for it holds for
    all scores after it.
    """

    def __init__(self, jobs: Mapping[str, Job], rules: RankRules, now: int) -> None:
        self._jobs = jobs
        self._rules = rules
        self._now = now
        self._tiers: dict[int, TierPeers] = {}

    def outranked_by(self, job: Job) -> list[Outranked]:
        """Return the peers that the job may stop now, the lowest score first, ties by job id."""
        score = self._rules.scores.get(job.job_id)
        if score is None:
            return []
        peers = self._of(job.tier, score)
        return peers.yielding[: bisect_left(peers.leads, score)]

    def outranks_any(self, job: Job) -> bool:
        """Return whether the job may stop a peer now."""
        score = self._rules.scores.get(job.job_id)
        if score is None:
            return False
        leads = self._of(job.tier, score).leads
        return bool(leads) and leads[0] < score

    def protected_from(self, job: Job) -> list[Protected]:
        """Return the other peers that the job outranks and may not stop yet."""
        score = self._rules.scores.get(job.job_id)
        if score is None:
            return []
        protected, margin = self._of(job.tier, score).protected, self._rules.preempt_margin
        return [peer for peer in protected if peer.score + margin < score]

    def _of(self, tier: int, score: float) -> TierPeers:
        """Return the jobs of the tier that yield to this score, or to a higher one as well."""
        peers = self._tiers.get(tier)
        if peers is None or score > peers.highest:
            peers = self._tiers[tier] = self._collect(tier, score)
        return peers

    def _collect(self, tier: int, score: float) -> TierPeers:
        protected: list[Protected] = []
        yielding: list[Outranked] = []
        rules, now = self._rules, self._now
        if rules.is_paused:
            return TierPeers(score, yielding, [], protected)
        scores, margin, largest_gpus = rules.scores, rules.preempt_margin, rules.largest_gpus
        protection = rules.protection
        jobs = self._jobs
        # Nearly all jobs are out by their score: the first pass looks at nothing else.
        behind = [
            (own, job_id)
            for job_id in jobs
            if (own := scores.get(job_id, UNRANKED)) + margin < score
        ]
        for own, job_id in behind:
            job = jobs[job_id]
            if job.tier != tier or job.phase != "running":
                continue
            if job.gpus > largest_gpus or not job.spec.preemptible:
                continue
            window = window_at(job, protection, now)
            opens_ms = window.opens_ms
            if opens_ms >= NEVER:
                continue
            priced = own + self._price_of(job, window)
            if not priced + margin < score:
                continue
            if opens_ms > now:
                protected.append(Protected(priced, opens_ms, window.rule, job_id))
            else:
                yielding.append(Outranked(priced, job_id, job))
        yielding.sort()
        return TierPeers(score, yielding, [peer.score + margin for peer in yielding], protected)

    def _price_of(self, job: Job, window: StopWindow) -> float:
        """Return what the cost of a stop adds to the job's score."""
        price, gittins_s = self._rules.price, self._rules.gittins_s.get(job.job_id)
        if price <= 0.0 or gittins_s is None:
            return 0.0
        cost_s = stop_price_s(job, window, self._now, self._rules.protection.time_scale)
        return price_of(cost_s, gittins_s, price)
