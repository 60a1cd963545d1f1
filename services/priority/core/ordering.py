"""From a policy's name to the jobs in line, best first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from services.priority.core import fair_share
from services.priority.core.policies import POLICIES, PolicyInputs, scores_of
from services.priority.core.queue_view import QueueView
from services.priority.core.runtimes import RunTimes
from services.priority.core.sorting import first_of
from services.priority.core.state import Queue
from services.priority.core.table import Floats
from shared.contracts.access import RuntimeSource
from shared.contracts.ranking import RANKED_MOST

FAIR_SHARE = "fair_share"


@dataclass(frozen=True, slots=True)
class ScoredOrder:
    """A score for every job of a view, higher goes first, and what decided."""

    scores: Floats
    runtime: RuntimeSource | Literal["none"]
    terms: dict[str, float]
    given: list[int] | None = None
    """Its places in order, where scores are made of them."""

    def first(self, view: QueueView) -> list[int]:
        """Places of the first waiting jobs, best first."""
        return first_of(view, self.scores, RANKED_MOST) if self.given is None else self.given


def is_classic(policy: str) -> bool:
    return policy == FAIR_SHARE or policy in POLICIES


def order_by(
    policy: str, queue: Queue, view: QueueView, now: int, source: RuntimeSource
) -> ScoredOrder:
    """The order of a classic policy; `source` says where it takes run times from."""
    if policy == FAIR_SHARE:
        return shared_out(queue, view, now)
    chosen = POLICIES[policy]
    times = RunTimes(view, chosen.source or source)
    ask = PolicyInputs(view, times, lambda: fair_share.factors(queue, view, now))
    scores = scores_of(chosen, ask)
    runtime: RuntimeSource | Literal["none"] = times.source if times.asked else "none"
    return ScoredOrder(scores, runtime, times.terms())


def shared_out(queue: Queue, view: QueueView, now: int) -> ScoredOrder:
    """Scores are places, counted down; who holds GPUs is never behind who waits, and who waits
    behind the named ones shares the last place."""
    first = fair_share.order(queue, view, now, RANKED_MOST)
    scores = np.full(len(view.rows), float(len(first) + 1))
    scores[: view.waiting] = 0.0
    scores[first] = len(first) - np.arange(len(first), dtype=np.float64)
    terms = {
        f"share_gpu_s.{tenant}": round(value, 3)
        for tenant, value in sorted(fair_share.shares(queue, now).items())
    }
    return ScoredOrder(scores, "none", terms, first)
