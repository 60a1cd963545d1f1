"""The waiting jobs of a ranking: their scores, and run times where EASY backfills by them."""

from __future__ import annotations

from services.priority.core.history.distributions import Floats
from services.priority.core.queue.queue_view import QueueView, ids_and_scores
from shared.contracts.pools import PoolConfigured


def waiting_jobs(
    pool: PoolConfigured, view: QueueView, scores: Floats, places: list[int]
) -> list[dict[str, object]]:
    """Return the fields of `Ranked` for the waiting jobs at those places."""
    ranked = ids_and_scores(view, scores, places)
    if not (places and backfills_by_history(pool)):
        return [{"job_id": job_id, "score": score} for job_id, score in ranked]
    return [
        {"job_id": job_id, "score": score, "run_s": run_s}
        for (job_id, score), run_s in zip(ranked, view.mean_s[places].tolist(), strict=True)
    ]


def backfills_by_history(pool: PoolConfigured) -> bool:
    """Return whether EASY reserves and backfills by predicted run times."""
    return pool.queue_mode == "easy" and pool.easy_runtime == "history"
