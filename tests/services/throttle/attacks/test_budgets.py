"""Budgets under hostile tenants and careless operators: what was used stays used."""

from __future__ import annotations

from typing import Any

from services.throttle.core.decide import Throttle
from services.throttle.core.disciplines.budgets import Budget
from services.throttle.core.state import EndpointState
from shared.contracts.endpoints import EndpointDeleted, TokenBudget
from shared.contracts.llm import LlmRequestFinished, LlmRequestRejected
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, run
from tests.services.throttle.llm import ended, endpoint, lane, local_request

TOKENS = TokenBudget(holder="tenant", unit="tokens", limit=100)
MONEY = TokenBudget(holder="tenant", unit="money", limit=1.0)


def decide(state: EndpointState, *inputs: Input, now: int = AT) -> list[Any]:
    return run(Throttle(), state, inputs, now)


def reconfigure(state: EndpointState, **settings: Any) -> None:
    decide(state, an_input(endpoint(**settings), "access"))


def reasons(events: list[Any]) -> list[str]:
    return [event.reason for event in events if isinstance(event, LlmRequestRejected)]


def test_the_limit_of_tpm_holds_after_a_change_of_prices() -> None:
    settings = {"discipline": "tpm", "tenant_tokens_per_minute": 50, "batch_tokens": None}
    state = lane(settings=endpoint(**settings))
    assert reasons(decide(state, local_request("r1", prompt=10, most=90))) == ["above_budget"]
    reconfigure(state, **settings, prompt_price=1.0)
    assert reasons(decide(state, local_request("r2", prompt=10, most=90))) == ["above_budget"]


def test_a_change_of_a_price_does_not_give_the_money_back() -> None:
    settings = {"budgets": (MONEY,), "request_price": 0.6}
    state = lane(settings=endpoint(**settings))
    decide(state, local_request("r1"), ended("r1"))
    assert reasons(decide(state, local_request("r2"))) == ["tenant_money"]
    reconfigure(state, budgets=(MONEY,), request_price=0.61)
    assert reasons(decide(state, local_request("r3"))) == ["tenant_money"]


def test_an_endpoint_has_not_the_use_of_the_one_that_was_deleted_on_its_lane() -> None:
    state = lane(settings=endpoint(budgets=(TOKENS,)))
    decide(state, local_request("r1", prompt=10, most=80), ended("r1", output=80))
    decide(state, an_input(EndpointDeleted(endpoint="chat", partition=0), "access"))
    reconfigure(state, endpoint="chat", budgets=(TOKENS,), discipline="vtc")
    assert reasons(decide(state, local_request("r2", prompt=10, most=80))) == []


def test_two_budgets_that_differ_in_their_limits_alone_count_once_each() -> None:
    more = TOKENS.model_copy(update={"limit": 200})
    state = lane(settings=endpoint(budgets=(TOKENS, more)))
    reconfigure(state, budgets=(TOKENS, more), discipline="vtc")
    decide(state, local_request("r1", prompt=10, most=30), ended("r1", output=30))
    used = [
        guard.usages.values[""].values["a"].meter.total(AT)
        for guard in state.discipline.guards
        if isinstance(guard, Budget)
    ]
    assert used == [40, 40]


def test_a_request_that_outlives_its_endpoint_is_charged_its_money() -> None:
    state = lane(settings=endpoint(request_price=0.5))
    decide(state, local_request("r1"))
    decide(state, an_input(EndpointDeleted(endpoint="chat", partition=0), "access"))
    (event,) = (e for e in decide(state, ended("r1")) if isinstance(e, LlmRequestFinished))
    assert event.cost == 0.5


def test_no_tenant_uses_up_the_budget_of_another_tenants_application() -> None:
    budget = TOKENS.model_copy(update={"holder": "application"})
    state = lane(settings=endpoint(budgets=(budget,)))
    decide(state, local_request("r1", "b", prompt=10, most=80, application="shop"))
    assert reasons(decide(state, local_request("r2", "a", application="shop"))) == []


def test_no_tenant_makes_the_use_of_another_tenants_user_forgotten() -> None:
    budget = TOKENS.model_copy(update={"holder": "user"})
    state = lane(settings=endpoint(budgets=(budget,), batch_tokens=None, queue_limit=10_000))
    decide(
        state, local_request("r1", "a", prompt=10, most=85, user="alice"), ended("r1", output=85)
    )
    assert reasons(decide(state, local_request("r2", "a", user="alice"))) == ["user_tokens"]
    for n in range(10_000):
        decide(state, local_request(f"b{n}", "b", 1, 1, user=f"u{n}"), ended(f"b{n}", output=1))
    assert reasons(decide(state, local_request("r3", "a", user="alice"))) == ["user_tokens"]
