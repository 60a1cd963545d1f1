"""Scores and run-time sources of base policies."""

from __future__ import annotations

import pytest

from services.priority.core.policies.ordering import is_base_policy, order_by
from tests.harness.decider import AT
from tests.services.priority.core.queues import entry, holding, ids_at, queue


def test_scores_of_fair_share_count_its_places_down() -> None:
    jobs = (entry("a"), entry("b", "blue", at=AT + 1), entry("c", at=AT + 2), entry("x"))
    state = queue(*jobs, running=(holding("x"),))
    view = state.view(AT + 2)
    order = order_by("fair_share", state, view, AT + 2, "history")
    assert ids_at(view, order.first(view)) == "bac", "red holds a GPU"
    assert order.scores.tolist() == [2.0, 3.0, 1.0, 4.0], "a running job is never behind"
    assert order.terms == {"share_gpu_s.red": 0.002}


@pytest.mark.parametrize(
    ("policy", "runtime", "terms"),
    [("fcfs", "none", {}), ("sjf", "user", {"runtime.user": 1.0, "runtime.prior": 1.0})],
)
def test_the_run_time_source_is_named_only_where_it_is_used(
    policy: str, runtime: str, terms: dict[str, float]
) -> None:
    state = queue(entry("a"), entry("b", at=AT + 1, walltime_s=5))
    order = order_by(policy, state, state.view(AT), AT, "user")
    assert (order.runtime, order.terms) == (runtime, terms)


def test_fair_share_is_a_base_policy_and_a_model_is_none() -> None:
    assert is_base_policy("fair_share") and is_base_policy("fcfs")
    assert not is_base_policy("learned:berth-preempt")
