"""A policy gives a ranking, or the reason why it gives none."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.learned.features import CONTEXT_S
from services.priority.core.learned.model import BadModel, LearnedModel
from services.priority.core.ranking.evaluation import (
    PolicyFailure,
    Ranking,
    RankingInputs,
    compute_model_inputs,
    rank_by_model,
    rank_by_name,
)
from services.priority.core.state import PriorityState
from tests.harness.decider import AT
from tests.services.priority.core.networks import tiny
from tests.services.priority.core.queues import entry, queue

SMALL_FIRST = tiny(ln_gpus=-1.0)
MODELS: dict[str, LearnedModel | BadModel] = {
    "small": SMALL_FIRST,
    "broken": BadModel("opset: 3, must be more"),
}
JOBS = (entry("four", gpus=4), entry("one", gpus=1, at=AT + 1))


def inputs_of(state: PriorityState, now: int = AT) -> RankingInputs:
    assert state.pool is not None
    view = state.view(now)
    model_inputs = compute_model_inputs(state, state.pool, view, now)
    return RankingInputs(state, state.pool, view, MODELS, now, model_inputs)


def ranked(inputs: RankingInputs, outcome: Ranking | PolicyFailure) -> list[str]:
    assert isinstance(outcome, Ranking), outcome
    return [str(inputs.view.job_ids[place]) for place in outcome.first]


def test_a_model_ranks_by_its_scores_and_is_named_with_its_hash() -> None:
    inputs = inputs_of(queue(*JOBS, learned="small"))
    outcome = rank_by_model(inputs, "small")
    assert ranked(inputs, outcome) == ["one", "four"]
    assert isinstance(outcome, Ranking)
    assert (outcome.model, outcome.sha256) == ("small", SMALL_FIRST.sha256)


def test_a_shadow_is_a_base_policy_or_a_model() -> None:
    inputs = inputs_of(queue(*JOBS, shadows=("learned:small",)))
    assert ranked(inputs, rank_by_name(inputs, "fcfs")) == ["four", "one"]
    assert ranked(inputs, rank_by_name(inputs, "learned:small")) == ["one", "four"]


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        ("learned:absent", "unknown", "learned: 'absent', must be a model of this installation"),
        ("learned:broken", "bad_model", "opset: 3, must be more"),
        ("absent", "unknown", "shadows: 'absent', must be a policy of this installation"),
    ],
)
def test_a_policy_that_cannot_rank_names_the_reason(name: str, reason: str, detail: str) -> None:
    outcome = rank_by_name(inputs_of(queue(*JOBS, learned="small")), name)
    assert isinstance(outcome, PolicyFailure)
    assert (outcome.reason, outcome.detail) == (reason, detail)


def test_without_a_network_no_features_are_computed() -> None:
    assert inputs_of(queue(*JOBS)).model_inputs is None


def test_the_context_of_the_queue_holds_for_a_while() -> None:
    state = queue(*JOBS, learned="small")
    fresh = inputs_of(state).model_inputs
    assert fresh is not None and fresh.is_new
    state.context, state.context_at = (9.0, 9.0, 9.0, 9.0), AT
    kept = inputs_of(state, AT + int(CONTEXT_S * 1000) - 1).model_inputs
    assert kept is not None and not kept.is_new
    assert kept.context.tolist() == [9.0] * 4
    renewed = inputs_of(state, AT + int(CONTEXT_S * 1000)).model_inputs
    assert renewed is not None and renewed.is_new
    assert np.isfinite(renewed.context).all() and renewed.context.tolist() != [9.0] * 4
