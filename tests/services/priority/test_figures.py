"""Metrics of use and fairness, for jobs of known size."""

from __future__ import annotations

import pytest

from services.priority import figures as module
from services.priority.core.state import PriorityState
from services.priority.figures import figures
from tests.harness.decider import AT, given, run
from tests.services.priority.core.lane import PRIORITY, admitted, placed, pool


def values(queue: PriorityState, at: int) -> dict[tuple[str, ...], float]:
    result = list(figures(queue, at))
    assert len({(name, labels) for name, _, labels in result}) == len(result)
    return {(name.removeprefix("berth_"), *labels): value for name, value, labels in result}


def busy() -> PriorityState:
    state = given(PRIORITY, pool("fair_share"))
    jobs = [admitted("r"), admitted("b", tenant="blue")]
    run(
        PRIORITY,
        state,
        [*jobs, placed("r", gpus=6, at=AT), placed("b", tenant="blue", gpus=2, at=AT)],
    )
    return state


def test_the_gap_is_the_excess_over_the_fair_share() -> None:
    result = values(busy(), AT + 60_000)
    assert result["tenant_use_ratio", "p", "red"] == pytest.approx(0.75)
    assert result["tenant_weight_ratio", "p", "red"] == 0.5
    assert result["fairness_gap_ratio", "p"] == pytest.approx(0.25)


def test_a_tenant_without_jobs_is_no_part_of_the_gap() -> None:
    state = given(PRIORITY, pool("fair_share"))
    run(PRIORITY, state, [admitted("r"), placed("r", gpus=6, at=AT)])
    assert values(state, AT + 60_000)["fairness_gap_ratio", "p"] == 0


def test_only_so_many_tenants_become_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TENANTS_MOST", 1)
    result = values(busy(), AT + 60_000)
    assert [key[2] for key in result if key[0] == "tenant_use_ratio"] == ["red"]


def test_an_order_ages_only_while_jobs_wait() -> None:
    state = given(PRIORITY, pool("fair_share"))
    run(PRIORITY, state, [admitted("r")])
    assert values(state, AT + 4000)["order_age_seconds", "p"] == pytest.approx(4, abs=1)
    assert values(busy(), AT + 4000)["order_age_seconds", "p"] == 0


def test_an_order_that_needs_no_repetition_does_not_age() -> None:
    state = given(PRIORITY, pool("fcfs", rank_ms=0))
    run(PRIORITY, state, [admitted("r")])
    assert values(state, AT + 60_000)["order_age_seconds", "p"] == 0


def test_a_degraded_policy_is_counted() -> None:
    state = busy()
    state.degraded["learned:x"] = "bad_model"
    assert values(state, AT)["policies_degraded", "p"] == 1
    assert list(figures(PriorityState(0), AT)) == []
