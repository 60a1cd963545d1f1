"""Orders the jobs of a view by a base policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from services.priority.core.history.distributions import Floats
from services.priority.core.policies import fair_share
from services.priority.core.policies.base_policies import POLICIES, PolicyInputs, scores_of
from services.priority.core.policies.runtimes import RunTimes
from services.priority.core.queue.queue_view import QueueView
from services.priority.core.queue.sorting import first_of
from services.priority.core.state import PriorityState
from shared.contracts.pools import RuntimeSource
from shared.contracts.ranking import RANKED_MOST

FAIR_SHARE = "fair_share"


@dataclass(frozen=True, slots=True)
class ScoredOrder:
    """A score for every job of a view, higher goes first, and the run times behind it."""

    scores: Floats
    runtime: RuntimeSource | Literal["none"]
    terms: dict[str, float]
    places: list[int] | None = None
    """Places of the first jobs, where the scores are derived from them."""

    def first(self, view: QueueView) -> list[int]:
        """Return the places of the first waiting jobs, best first."""
        if self.places is not None:
            return self.places
        return first_of(view, self.scores, RANKED_MOST)


def is_base_policy(policy: str) -> bool:
    return policy == FAIR_SHARE or policy in POLICIES


def order_by(
    policy: str, queue: PriorityState, view: QueueView, now: int, source: RuntimeSource
) -> ScoredOrder:
    """Order the view by a base policy; `source` is the pool's source of run times."""
    if policy == FAIR_SHARE:
        return order_by_share(queue, view, now)
    scores, times = score_by(policy, queue, view, now, source)
    runtime: RuntimeSource | Literal["none"] = times.source if times.used else "none"
    return ScoredOrder(scores, runtime, times.terms())


def score_by(
    policy: str, queue: PriorityState, view: QueueView, now: int, source: RuntimeSource
) -> tuple[Floats, RunTimes]:
    """Return a score per job of the view by one of `POLICIES`, and the run times behind them."""
    base_policy = POLICIES[policy]
    times = RunTimes(view, base_policy.source or source)
    inputs = PolicyInputs(view, times, lambda: fair_share.factors(queue, view, now))
    return scores_of(base_policy, inputs), times


def order_by_share(queue: PriorityState, view: QueueView, now: int) -> ScoredOrder:
    """Return places, counted down, as scores.

    Running jobs are never behind waiting ones; jobs beyond the first `RANKED_MOST` share the last
    place.
    """
    first = fair_share.order_places(queue, view, now, RANKED_MOST)
    scores = np.full(len(view.rows), float(len(first) + 1))
    scores[: view.waiting] = 0.0
    scores[first] = len(first) - np.arange(len(first), dtype=np.float64)
    terms = {
        f"share_gpu_s.{tenant}": round(value, 3)
        for tenant, value in sorted(fair_share.shares(queue, now).items())
    }
    return ScoredOrder(scores, "none", terms, first)
