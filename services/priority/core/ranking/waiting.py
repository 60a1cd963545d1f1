"""The waiting jobs of a ranking: their scores, and run times where placement decides by them."""

from __future__ import annotations

import math
from typing import Literal

from services.priority.core.history.distributions import Floats
from services.priority.core.queue.queue_view import QueueView, ids_and_scores
from shared.contracts.pools import PoolConfigured

RunTimes = Literal["", "all", "undeclared"]
"""Jobs whose predicted run time goes along with their score; empty: none."""


def waiting_jobs(
    pool: PoolConfigured, view: QueueView, scores: Floats, places: list[int]
) -> list[dict[str, object]]:
    """Return the fields of `Ranked` for the waiting jobs at those places."""
    ranked = ids_and_scores(view, scores, places)
    published = run_times_of(pool) if places else ""
    if not published:
        return [{"job_id": job_id, "score": score} for job_id, score in ranked]
    columns = (view.mean_s, view.samples, view.walltime_s)
    rows = zip(*(column[places].tolist() for column in columns), strict=True)
    return [
        {"job_id": job_id, "score": score, **published_run_s(published, *row)}
        for (job_id, score), row in zip(ranked, rows, strict=True)
    ]


def published_run_s(
    published: RunTimes, mean_s: float, samples: float, walltime_s: float
) -> dict[str, float]:
    """Return `run_s` if it goes along; that of a job without history would be the prior's."""
    if published == "undeclared" and not (samples > 0 and math.isnan(walltime_s)):
        return {}
    return {"run_s": mean_s} if published else {}


def run_times_of(pool: PoolConfigured) -> RunTimes:
    """Return which jobs' run times placement decides by.

    EASY reserves and backfills by those of all jobs. The look-ahead of CP-SAT and schedulers take
    what a job declares, and history where it declares nothing; under EASY a run time would change
    who may pass the head.
    """
    if backfills_by_history(pool):
        return "all"
    by_estimates = pool.solver == "cpsat" or pool.scheduler is not None
    return "undeclared" if by_estimates and pool.queue_mode != "easy" else ""


def backfills_by_history(pool: PoolConfigured) -> bool:
    """Return whether EASY reserves and backfills by predicted run times."""
    return pool.queue_mode == "easy" and pool.easy_runtime == "history"
