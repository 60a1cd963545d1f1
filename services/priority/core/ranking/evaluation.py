"""Evaluates one policy, base or learned, on the jobs of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from services.priority.core.history.distributions import Floats
from services.priority.core.learned.features import CONTEXT_S, compute_features
from services.priority.core.learned.model import (
    BadModel,
    BadOutput,
    Float32s,
    LearnedModel,
    LearnedModels,
    model_name,
    uses_history,
)
from services.priority.core.policies.ordering import is_base_policy, order_by
from services.priority.core.queue.queue_view import QueueView
from services.priority.core.queue.sorting import first_of
from services.priority.core.state import PriorityState
from shared.contracts.checkpoint import wall_ms
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import RANKED_MOST, DegradeReason

LEARNED = "learned:"
"""Prefix of a learned policy among a pool's shadows."""


class ModelInputs(NamedTuple):
    """Features of the jobs [n, F] and of the pool [C], as networks take them."""

    jobs: Float32s
    context: Float32s
    is_new: bool
    """Whether the context was computed for this ranking."""


@dataclass(frozen=True, slots=True)
class RankingInputs:
    """The jobs to rank, and the models to rank them by."""

    queue: PriorityState
    pool: PoolConfigured
    view: QueueView
    models: LearnedModels
    now: int
    model_inputs: ModelInputs | None


@dataclass(frozen=True, slots=True)
class PolicyFailure:
    """The reason why a policy gives no order."""

    reason: DegradeReason
    detail: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Places of the first waiting jobs, a score for every job, and the model that gave it."""

    first: list[int]
    scores: Floats
    model: str = ""
    sha256: str = ""


def compute_model_inputs(
    queue: PriorityState, pool: PoolConfigured, view: QueueView, now: int
) -> ModelInputs | None:
    """Return None where no network is used. The context holds for a while, see `CONTEXT_S`."""
    if not (pool.learned or any(name.startswith(LEARNED) for name in pool.shadows)):
        return None
    jobs, context = compute_features(view, uses_history(pool))
    if queue.context and now - queue.context_at < wall_ms(CONTEXT_S, pool.time_scale):
        return ModelInputs(jobs, np.array(queue.context, np.float32), False)
    return ModelInputs(jobs, context, True)


def rank_by_model(inputs: RankingInputs, name: str) -> Ranking | PolicyFailure:
    """Rank all jobs by a learned policy, or by the model of that family for the pool."""
    chosen = name if name in inputs.models else model_name(name, inputs.pool)
    match inputs.models.get(chosen):
        case None:
            detail = f"learned: {name!r}, must be a model of this installation"
            return PolicyFailure("unknown", detail)
        case BadModel() as error:
            return PolicyFailure("bad_model", str(error)[:512])
        case LearnedModel() as model:
            assert inputs.model_inputs is not None, "a pool with a learned policy has features"
            jobs, context, _ = inputs.model_inputs
            try:
                own = model.scores(jobs, context).astype(np.float64)
            except BadOutput as error:
                return PolicyFailure("bad_output", str(error)[:512])
            scores = model.rerank(own, inputs.view.base_score)
            first = first_of(inputs.view, scores, RANKED_MOST)
            return Ranking(first, scores, chosen, model.sha256)


def rank_by_name(inputs: RankingInputs, name: str) -> Ranking | PolicyFailure:
    """Rank all jobs by a shadow: a base policy, or `learned:` and a model."""
    if name.startswith(LEARNED):
        return rank_by_model(inputs, name.removeprefix(LEARNED))
    if not is_base_policy(name):
        detail = f"shadows: {name!r}, must be a policy of this installation"
        return PolicyFailure("unknown", detail)
    order = order_by(name, inputs.queue, inputs.view, inputs.now, inputs.pool.runtime)
    return Ranking(order.first(inputs.view), order.scores)
