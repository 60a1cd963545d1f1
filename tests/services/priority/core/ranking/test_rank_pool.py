"""Learned policies over the base: which one decides, reports of failures, and shadows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from services.priority.core.decide import Priority
from services.priority.core.learned.features import SCHEMA, compute_features
from services.priority.core.learned.model import BadModel, LearnedModel, ModelManifest, session_of
from services.priority.core.ranking.shadows import SHADOW_MS
from services.priority.core.state import PriorityState
from shared.contracts.base import Event
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import PolicyDegraded, PolicyRestored, QueueRanked, ShadowRanked
from tests.harness.decider import AT, an_input, given, run
from tests.harness.hash_seeds import printed_under_two_hash_seeds
from tests.services.priority.core.lane import (
    admitted,
    node,
    only,
    pool,
    running,
    stopped,
    succeeded,
)
from tests.services.priority.core.networks import manifest, network, tiny

SMALL_FIRST = tiny(ln_gpus=-1.0)
BIG_FIRST = tiny(ln_gpus=1.0)
MODELS: dict[str, LearnedModel | BadModel] = {
    "small": SMALL_FIRST,
    "big": BIG_FIRST,
    "broken": BadModel("opset: 3, must be more"),
}
LEARNED = Priority(MODELS)
JOBS = [admitted("two", gpus=2), admitted("four", gpus=4, at=AT + 1), admitted("one", at=AT + 2)]


def a_pool(**more: Any) -> PriorityState:
    settings: dict[str, Any] = {"rank_ms": 0, **more}
    return given(LEARNED, pool("fcfs", **settings))


def reconfigured(state: PriorityState, now: int, **more: Any) -> list[Event]:
    assert state.pool is not None
    changed = state.pool.model_copy(update=more)
    return run(LEARNED, state, [an_input(changed, "access")], now)


def names(event: QueueRanked) -> list[str]:
    return [job.job_id for job in event.ranked]


def test_a_learned_policy_ranks_the_base_anew_and_is_named_by_its_hash() -> None:
    state = a_pool(learned="small")
    (_, result) = run(LEARNED, state, JOBS)
    assert isinstance(result, QueueRanked)
    assert names(result) == ["one", "two", "four"]
    assert (result.base_policy, result.learned) == ("fcfs", "small")
    assert result.model_sha256 == SMALL_FIRST.sha256
    x, context = compute_features(state.view(AT))
    own = dict(zip(state.view(AT).job_ids, SMALL_FIRST.scores(x, context).tolist(), strict=True))
    assert {job.job_id: job.score for job in result.ranked} == own


def test_it_scores_waiting_and_running_jobs_on_one_scale() -> None:
    state = a_pool(learned="small", preemption="ranked")
    result = only(run(LEARNED, state, [*JOBS, *running("four", gpus=4)]), QueueRanked)
    (four,) = result.running
    assert names(result) == ["one", "two"]
    assert four.score < min(job.score for job in result.ranked)


def test_the_context_of_a_network_holds_for_an_hour_unless_nodes_change() -> None:
    state = a_pool(learned="small")
    first = only(run(LEARNED, state, JOBS), QueueRanked)
    more = [admitted("five", gpus=8)]
    assert len(first.context) == len(SCHEMA.context)
    assert only(run(LEARNED, state, more, AT + 3_599_000), QueueRanked).context == ()
    again = only(run(LEARNED, state, [], AT + 3_604_000), QueueRanked)
    assert again.context[0] > first.context[0], "there are more waiting now"
    grown = only(run(LEARNED, state, [node("n9", 64)], AT + 3_605_000), QueueRanked)
    assert grown.context[0] < again.context[0], "and more GPUs"


def test_a_class_still_goes_first_under_a_learned_policy() -> None:
    state = a_pool(learned="small")
    jobs = [admitted("low", cls="low"), admitted("high", cls="high", gpus=8)]
    assert names(only(run(LEARNED, state, jobs), QueueRanked)) == ["high", "low"]


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        ("absent", "unknown", "learned: 'absent', must be a model of this installation"),
        ("broken", "bad_model", "opset: 3, must be more"),
    ],
)
def test_a_missing_or_bad_model_leaves_the_base_and_is_reported_once(
    name: str, reason: str, detail: str
) -> None:
    state = a_pool(learned=name)
    events = run(LEARNED, state, JOBS)
    degraded, result = only(events, PolicyDegraded), only(events, QueueRanked)
    assert (degraded.learned, degraded.reason, degraded.detail) == (name, reason, detail)
    assert names(result) == ["two", "four", "one"]
    assert (result.learned, result.model_sha256) == ("", "")
    assert [type(e) for e in run(LEARNED, state, [], AT + 6000)] == [QueueRanked]


def test_a_model_without_finite_scores_is_degraded_until_it_has_them_again() -> None:
    """Its weight of a running job is so large that two of the factors overflow."""
    made = network([3e38 if c == "running" else 0.0 for c in SCHEMA.columns], divide_by=0.1)
    decider = Priority({"frail": unprobed(made)})
    state = given(decider, pool("fcfs", learned="frail", rank_ms=0))
    assert only(run(decider, state, JOBS), QueueRanked).learned == "frail"
    broken = run(decider, state, running("two", gpus=2), AT + 10)
    assert only(broken, PolicyDegraded).detail == "scores[2]: inf, must be finite"
    assert only(broken, QueueRanked).learned == ""
    again = run(decider, state, [succeeded("two", AT + 20)], AT + 20)
    assert [type(e) for e in again][1:] == [PolicyRestored, QueueRanked]
    assert only(again, QueueRanked).learned == "frail"
    assert state.degraded == {}


def unprobed(made: bytes) -> LearnedModel:
    """Return a model without its probe."""
    return LearnedModel(ModelManifest.model_validate_json(manifest(made)), session_of(made))


def test_a_restored_policy_is_reported_once() -> None:
    state = a_pool(learned="broken")
    run(LEARNED, state, JOBS)
    mended = Priority({**MODELS, "broken": SMALL_FIRST})
    events = run(mended, state, [], AT + 6000)
    assert [type(e) for e in events] == [PolicyRestored, QueueRanked]
    assert [type(e) for e in run(mended, state, [], AT + 12_000)] == [QueueRanked]


def test_a_policy_that_is_not_configured_is_not_degraded() -> None:
    state = a_pool(learned="broken", shadows=("learned:absent",))
    run(LEARNED, state, JOBS)
    assert set(state.degraded) == {"broken", "shadow learned:absent"}
    events = reconfigured(state, AT + 10, learned=None, shadows=())
    assert [type(e) for e in events] == [PoolConfigured, QueueRanked]
    assert state.degraded == {}


def test_shadows_rank_the_same_queue_without_effect() -> None:
    plain, watched = a_pool(), a_pool(shadows=("smallest_first", "learned:big", "fcfs"))
    alone, beside = (run(LEARNED, state, JOBS) for state in (plain, watched))
    acting = only(beside, QueueRanked)
    assert acting.context, "a network is among the shadows"
    assert acting.model_copy(update={"context": ()}) == only(alone, QueueRanked)
    shadows = [event for event in beside if isinstance(event, ShadowRanked)]
    assert [(e.policy, e.top, e.agreement) for e in shadows] == [
        ("smallest_first", ("one", "two", "four"), pytest.approx(-1 / 3, abs=1e-6)),
        ("learned:big", ("four", "two", "one"), pytest.approx(1 / 3, abs=1e-6)),
        ("fcfs", ("two", "four", "one"), 1.0),
    ]
    assert [e.model_sha256 for e in shadows] == ["", BIG_FIRST.sha256, ""]
    assert [e.waiting for e in shadows] == [3, 3, 3]


def test_shadows_are_recorded_at_most_every_ten_seconds() -> None:
    state = a_pool(shadows=("sjf",))
    run(LEARNED, state, JOBS)
    soon = run(LEARNED, state, [admitted("more")], AT + SHADOW_MS - 1)
    assert only(soon, QueueRanked) and not any(isinstance(e, ShadowRanked) for e in soon)
    late = run(LEARNED, state, [admitted("last")], AT + SHADOW_MS)
    assert only(late, ShadowRanked).waiting == 5


def test_a_shadow_that_fails_is_reported_once_without_effect() -> None:
    state = a_pool(shadows=("learned:broken", "no_such_policy"))
    events = run(LEARNED, state, JOBS)
    degraded = [event for event in events if isinstance(event, PolicyDegraded)]
    assert [(e.learned, e.reason, e.shadow) for e in degraded] == [
        ("learned:broken", "bad_model", True),
        ("no_such_policy", "unknown", True),
    ]
    assert names(only(events, QueueRanked)) == ["two", "four", "one"]
    assert [type(e) for e in run(LEARNED, state, [], AT + SHADOW_MS)] == [QueueRanked]


def test_a_ranking_carries_the_predictors_error() -> None:
    state = a_pool()
    run(LEARNED, state, [admitted("a"), *running("a")])
    expected_s = float(state.table.get(state.jobs["a"].row, "p50_s"))
    run(LEARNED, state, [succeeded("a", AT + 100_000)], AT + 100_000)
    result = only(run(LEARNED, state, [admitted("b")], AT + 100_001), QueueRanked)
    error = float(np.log10(expected_s / 100))
    assert result.terms["estimate.samples"] == 1
    assert result.terms["estimate.error_log10_p50"] == pytest.approx(abs(error), abs=1e-4)
    assert result.terms["estimate.bias_log10_p50"] == pytest.approx(error, abs=1e-4)
    assert result.terms["estimate.within_p10_p90"] == 1.0


def test_a_state_with_everything_survives_a_snapshot() -> None:
    state = a_pool(learned="small", shadows=("srsf",), preemption="ranked")
    run(LEARNED, state, [node("n", 8), *JOBS, *running("one")])
    run(LEARNED, state, stopped("one", AT + 90_000), AT + 90_000)
    run(LEARNED, state, [succeeded("two", AT + 99_000)], AT + 99_000)
    again = pickle.loads(pickle.dumps(state))
    assert again == state
    more = [admitted("next", at=AT + 100_000)]
    assert run(LEARNED, again, more, AT + 100_000) == run(LEARNED, state, more, AT + 100_000)


SCRIPT = """
from services.priority.core.decide import Priority
from tests.harness.decider import AT, given, run
from tests.services.priority.core.lane import *
from tests.services.priority.core.networks import tiny
decider = Priority({"small": tiny(ln_gpus=-1.0)})
settings = dict(learned="small", shadows=("srsf", "fair_share", "gittins"), preemption="ranked")
state, out = given(decider, pool("multifactor", rank_ms=0, **settings)), []
for n in range(80):
    at, tenant = AT + n * 7_000, ["red", "blue", "green", "grey"][n % 4]
    job = admitted(f"j{n}", tenant=tenant, gpus=1 + n % 3, at=at - n % 7, checkpoint_interval_s=60)
    out += run(decider, state, [job], at)
    if n % 3 == 0:
        out += run(decider, state, running(f"j{n // 2}", tenant=tenant, at=at + 1), at + 1)
    if n % 12 == 0:
        out += run(decider, state, stopped(f"j{n // 2}", at + 5_000), at + 5_000)
    if n % 9 == 0:
        out += run(decider, state, [succeeded(f"j{n // 3}", at + 6_000)], at + 6_000)
print([e.model_dump_json() for e in out])
"""


@pytest.mark.process
def test_two_hash_seeds_give_the_same_decisions_of_every_policy() -> None:
    first, second = printed_under_two_hash_seeds(SCRIPT)
    assert "ShadowRanked" not in first and "agreement" in first
    assert first == second
