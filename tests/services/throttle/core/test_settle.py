from __future__ import annotations

from typing import Any

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.endpoints import TokenBudget
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestRejected,
    RequestsLeft,
    TokensCharged,
    TokensMade,
)
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, run
from tests.services.throttle.llm import ended, endpoint, lane, local_request, made


def decide(state: EndpointState, *inputs: Input, now: int = AT) -> list[Any]:
    return run(Throttle(), state, inputs, now)


def counter(state: EndpointState, tenant: str = "a") -> float:
    order: Any = state.discipline.order
    return float(order.accounts.of(tenant).counter)


@pytest.fixture
def state() -> EndpointState:
    return lane(settings=endpoint(discipline="vtc", prompt_price=1e6, output_price=2e6))


def test_the_prompt_is_charged_at_the_start_and_the_output_as_it_is_made(
    state: EndpointState,
) -> None:
    decide(state, local_request("r1", prompt=30, most=50))
    assert counter(state) == 30
    assert decide(state, made(r1=7, gone=3)) == [
        TokensCharged(endpoint="chat", made=(TokensMade(request_id="r1", tokens=7),))
    ]
    assert counter(state) == 30 + 2 * 7


def test_the_engines_counts_replace_the_reserved_ones(state: EndpointState) -> None:
    decide(state, local_request("r1", prompt=30, most=50), made(r1=7))
    end = ended("r1", output=20, prompt_tokens=24, cached_tokens=8, upstream="gpu-1")
    assert decide(state, end, now=AT + 5000) == [
        LlmRequestFinished(
            request_id="r1",
            tenant="a",
            prompt_tokens=24,
            output_tokens=20,
            served_ms=5000,
            cached_tokens=8,
            upstream="gpu-1",
            cost=64.0,
        )
    ]
    assert counter(state) == 24 + 2 * 20
    assert state.running == {}


def test_tokens_that_were_counted_are_charged_also_if_the_end_names_fewer(
    state: EndpointState,
) -> None:
    decide(state, local_request("r1", most=50), made(r1=30))
    (event,) = decide(state, ended("r1", output=10, outcome="failed", reason="reset"))
    assert (event.output_tokens, event.outcome, event.reason) == (30, "failed", "reset")


def test_a_lost_request_is_charged_its_whole_reservation(state: EndpointState) -> None:
    decide(state, local_request("r1", prompt=30, most=50), made(r1=7))
    (event,) = decide(state, ended("r1", output=0, outcome="lost"))
    assert (event.prompt_tokens, event.output_tokens) == (30, 50)
    assert counter(state) == 30 + 2 * 50


def test_a_second_end_changes_nothing(state: EndpointState) -> None:
    decide(state, local_request("r1"))
    assert len(decide(state, ended("r1"), ended("r1"))) == 1


def test_a_client_that_leaves_the_queue_is_charged_nothing() -> None:
    state = lane(capacity=1)
    decide(state, local_request("r1"), local_request("r2"), local_request("r3"))
    left = an_input(RequestsLeft(request_ids=("r2", "r1")), "local")
    (event,) = decide(state, left)
    assert isinstance(event, LlmRequestRejected)
    assert (event.request_id, event.reason) == ("r2", "cancelled")
    assert list(state.waiting) == ["r3"]
    assert state.waiting_of == {"a": 1}


def test_a_budget_holds_the_reservation_and_keeps_what_was_used() -> None:
    budget = TokenBudget(holder="tenant", unit="tokens", limit=100)
    state = lane(settings=endpoint(budgets=(budget,)))
    decide(state, local_request("r1", prompt=10, most=80))
    (refused,) = decide(state, local_request("r2", prompt=10, most=10))
    assert refused.reason == "tenant_tokens"
    decide(state, ended("r1", output=20, prompt_tokens=5))
    assert decide(state, local_request("r3", prompt=15, most=60))
    assert decide(state, local_request("r4", prompt=1, most=1))[0].reason == "tenant_tokens"
