"""Heuristics of Decima's evaluation, which know the work of all stages.

Tetris and Graphene* pack executors of several resources; those here are alike, so neither is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.stage_dags.world import Choice, OpenJob, Pick, Situation


def fifo(situation: Situation) -> Choice | None:
    """Give all executors to the job that came first, stage after stage."""
    for job in situation.jobs:
        if stages := job.runnable():
            return Choice(job, stages[0], situation.executors)
    return None


def sjf_cp(situation: Situation) -> Choice | None:
    """Give all executors to the job with the least work, on its critical path first."""
    return _first(situation, lambda job: job.work_s)


def critical_path(situation: Situation) -> Choice | None:
    """Give all executors to the stage with the longest critical path."""
    return _first(situation, lambda job: -max(job.critical_s[own] for own in job.runnable()))


def _first(situation: Situation, key: Callable[[OpenJob], float]) -> Choice | None:
    jobs = [job for job in situation.jobs if job.runnable()]
    best = min(jobs, key=key, default=None)
    return None if best is None else Choice(best, critical_stage(best), situation.executors)


def critical_stage(job: OpenJob) -> int:
    """Return the runnable stage with the longest critical path."""
    return max(job.runnable(), key=lambda stage: job.critical_s[stage])


def shares(jobs: Sequence[OpenJob], executors: int, alpha: float) -> list[float]:
    """Return the executors of each job in proportion to a power of its work."""
    weights = [job.work_s**alpha for job in jobs]
    total = sum(weights)
    return [executors * weight / total for weight in weights]


def weighted_fair(alpha: float, conserves: bool) -> Pick:
    """Return the policy that gives each job its share of the executors, rounded up.

    `alpha`: 0 is fair, 1 the naive weighted one. Executors stay at their job up to its share; the
    others go where the least part of a share is used. With `conserves` those that remain exceed
    shares, without it they are idle.
    """

    def pick(situation: Situation) -> Choice | None:
        own = shares(situation.jobs, situation.executors, alpha)
        best: tuple[tuple[bool, bool, float], OpenJob, int] | None = None
        for job, share in zip(situation.jobs, own, strict=True):
            limit = int(-(-share // 1))
            is_full = job.busy >= limit
            if (is_full and not conserves) or not job.runnable():
                continue
            key = (is_full, not job.idle, job.busy / share)
            if best is None or key < best[0]:
                best = (key, job, max(limit, job.busy + 1))
        return None if best is None else Choice(best[1], critical_stage(best[1]), best[2])

    return pick
