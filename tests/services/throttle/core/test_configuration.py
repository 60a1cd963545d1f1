from __future__ import annotations

from typing import Any

import pytest

from services.throttle.core.configuration import cost_of, new_discipline
from services.throttle.core.decide import Throttle
from services.throttle.core.disciplines.budgets import Budget
from services.throttle.core.state import EndpointState
from shared.contracts.endpoints import TokenBudget
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, run
from tests.services.throttle.llm import ended, endpoint, lane, local_request, made

BUDGET = TokenBudget(holder="tenant", unit="tokens", limit=100)


def decide(state: EndpointState, *inputs: Input) -> list[Any]:
    return run(Throttle(), state, inputs, AT)


def reconfigured(state: EndpointState, **settings: Any) -> EndpointState:
    decide(state, an_input(endpoint(**settings), "access"))
    return state


def test_the_cost_is_per_request_and_per_million_tokens() -> None:
    settings = endpoint(request_price=0.5, prompt_price=2.0, output_price=8.0)
    assert cost_of(settings, 1_000, 500) == pytest.approx(0.5 + 0.002 + 0.004)


@pytest.mark.parametrize(
    ("memory", "left_after_a_minute"), [("window", 0.0), ("half_life", 25.0), ("forever", 50.0)]
)
def test_budgets_forget_as_their_memory_says(memory: Any, left_after_a_minute: float) -> None:
    budget = BUDGET.model_copy(update={"memory": memory, "period_s": 60.0})
    (guard,) = new_discipline(endpoint(budgets=(budget,), discipline="vtc")).guards
    assert isinstance(guard, Budget)
    meter = guard.memory.meter()
    meter.add(50, AT)
    later = AT + (70_000 if memory == "window" else 60_000)
    assert meter.total(later) == pytest.approx(left_after_a_minute)


def test_requests_go_on_under_another_discipline() -> None:
    state = lane(capacity=1)
    decide(state, *(local_request(f"a{n}", "a") for n in range(3)), local_request("b0", "b"))
    decide(state, made(a0=4))
    reconfigured(state, discipline="fcfs")
    decide(state, ended("a0"))
    assert list(state.running) == ["a1"]
    reconfigured(state, discipline="vtc")
    decide(state, ended("a1"))
    assert list(state.running) == ["b0"]
    for last in ("b0", "a2"):
        decide(state, ended(last))
    assert not state.running
    assert not state.waiting


def test_a_change_of_upstreams_keeps_the_counters() -> None:
    state = lane()
    discipline = state.discipline
    assert reconfigured(state, queue_limit=7).discipline is discipline


def test_a_budget_keeps_its_use_over_changes_of_all_else() -> None:
    state = lane(settings=endpoint(budgets=(BUDGET,)))
    decide(state, local_request("r1", prompt=10, most=80))
    for settings in ({"discipline": "vtc"}, {"discipline": "vtc", "queue_limit": 5}):
        reconfigured(state, budgets=(BUDGET,), **settings)
        (refused,) = decide(state, local_request("r2", prompt=10, most=10))
        assert refused.reason == "tenant_tokens"
    larger = BUDGET.model_copy(update={"limit": 120})
    reconfigured(state, budgets=(larger,), discipline="vtc")
    assert len(decide(state, local_request("r3", prompt=10, most=10))) == 2


def test_a_new_budget_counts_what_open_requests_hold() -> None:
    state = lane()
    decide(state, local_request("r1", prompt=10, most=80))
    reconfigured(state, budgets=(BUDGET,))
    (refused,) = decide(state, local_request("r2", prompt=10, most=10))
    assert refused.reason == "tenant_tokens"
    decide(state, ended("r1", output=5))
    assert len(decide(state, local_request("r3", prompt=10, most=70))) == 2
