"""The running jobs of a ranking: their scores, and their Gittins ranks where stops have a price."""

from __future__ import annotations

from services.priority.core.history.distributions import Floats
from services.priority.core.policies import expected
from services.priority.core.policies.base_policies import POLICIES
from services.priority.core.queue.queue_view import QueueView, ids_and_scores
from shared.contracts.pools import PoolConfigured


def running_jobs(
    pool: PoolConfigured, view: QueueView, scores: Floats, places: list[int]
) -> list[dict[str, object]]:
    """Return the fields of `Ranked` for the running jobs at those places."""
    ranked = ids_and_scores(view, scores, places)
    if not prices_stops(pool):
        return [{"job_id": job_id, "score": score} for job_id, score in ranked]
    gittins_s = expected.believed_gittins_s(view)[places].tolist() if places else []
    return [
        {"job_id": job_id, "score": score, "gittins_s": left_s}
        for (job_id, score), left_s in zip(ranked, gittins_s, strict=True)
    ]


def prices_stops(pool: PoolConfigured) -> bool:
    """Return whether the cost of a stop is weighed against what history expects of the rest."""
    base = None if pool.learned else POLICIES.get(pool.base_policy)
    source = (base.source if base else None) or pool.runtime
    is_priced = pool.preemption_protection == "progress" and pool.preempt_price > 0.0
    return is_priced and source == "history"
