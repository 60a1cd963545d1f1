"""A reservation beyond a budget is found, with any memory, unit and change of settings."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.base import Event
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted, TokenBudget
from shared.contracts.llm import (
    EndpointClockStepped,
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
    TokensMade,
)
from shared.verify.llm_limits import BudgetRule
from tests.shared.ledger_events import AT, ledger_event

DELETED = EndpointDeleted(endpoint="chat", partition=0)


def configured(limit: float, **settings: Any) -> EndpointConfigured:
    prices = {name: settings.pop(name, 0.0) for name in ("request_price", "output_price")}
    budget = TokenBudget.model_validate(
        {"holder": "tenant", "unit": "tokens", "limit": limit, **settings}
    )
    return EndpointConfigured(endpoint="chat", partition=0, budgets=(budget,), **prices)


def queued(request_id: str, prompt: int = 10, most: int = 40) -> LlmRequestQueued:
    return LlmRequestQueued(
        request_id=request_id,
        tenant="red",
        endpoint="chat",
        prompt_tokens=prompt,
        max_output_tokens=most,
    )


def started(request_id: str) -> LlmRequestStarted:
    return LlmRequestStarted(request_id=request_id, tenant="red")


def finished(request_id: str, output: int) -> LlmRequestFinished:
    return LlmRequestFinished(
        request_id=request_id, tenant="red", prompt_tokens=10, output_tokens=output
    )


def charged(request_id: str, tokens: int) -> TokensCharged:
    made = (TokensMade(request_id=request_id, tokens=tokens),)
    return TokensCharged(endpoint="chat", made=made)


def details(*events: Event, step_ms: int = 10) -> list[str]:
    rule = BudgetRule()
    for seq, event in enumerate(events, start=1):
        rule.observe(ledger_event("throttle", event, seq=seq, at=AT + seq * step_ms))
    return [violation.detail for violation in rule.finish()]


def test_requests_together_may_hold_the_whole_limit() -> None:
    assert details(configured(100), queued("r1"), queued("r2")) == []


def test_one_token_more_is_found() -> None:
    events = (configured(99), queued("r1"), queued("r2"))
    assert details(*events) == ["budget of 99 tokens of tenant red is passed by 1"]


def test_what_an_ended_request_did_not_use_is_free_again() -> None:
    served = (queued("r1"), started("r1"), charged("r1", 3), finished("r1", 5))
    assert details(configured(65), *served, queued("r2")) == []
    assert len(details(configured(64), *served, queued("r2"))) == 1


def test_one_that_left_the_queue_holds_nothing() -> None:
    left = LlmRequestRejected(request_id="r1", tenant="red", reason="cancelled")
    assert details(configured(60), queued("r1"), left, queued("r2")) == []


@pytest.mark.parametrize(("memory", "passed"), [("window", 0), ("half_life", 1), ("forever", 1)])
def test_use_is_remembered_as_the_budget_says(memory: str, passed: int) -> None:
    served = (queued("r1"), started("r1"), finished("r1", 40))
    settings = configured(60, memory=memory, period_s=1.0)
    assert len(details(settings, *served, queued("r2"), step_ms=1500)) == passed


@pytest.mark.parametrize(
    ("unit", "limit", "passed"), [("requests", 2, 0), ("requests", 1, 1), ("money", 81, 1)]
)
def test_units_have_their_prices(unit: str, limit: float, passed: int) -> None:
    settings = configured(limit, unit=unit, request_price=1, output_price=1e6)
    assert len(details(settings, queued("r1"), queued("r2"))) == passed


def test_a_budget_keeps_its_use_when_its_limit_is_changed() -> None:
    served = (queued("r1"), started("r1"), finished("r1", 40))
    assert details(configured(60), *served, configured(100), queued("r2")) == []
    assert len(details(configured(60), *served, configured(99), queued("r2"))) == 1


def test_a_budget_of_new_prices_holds_open_requests_by_these() -> None:
    money = {"unit": "money", "output_price": 1e6}
    before, after = configured(100, **money), configured(119, **(money | {"output_price": 2e6}))
    assert details(before, queued("r1"), after, queued("r2", most=19)) == []
    assert len(details(before, queued("r1"), after, queued("r2", most=20))) == 1


def test_an_endpoint_that_is_made_again_counts_its_open_requests_alone() -> None:
    served = (queued("r1"), started("r1"), finished("r1", 40), queued("r2"))
    again = (DELETED, configured(100), queued("r3"))
    assert details(configured(200), *served, *again) == []
    assert len(details(configured(200), *served, DELETED, configured(99), queued("r3"))) == 1


def test_other_ledgers_are_not_regarded() -> None:
    rule = BudgetRule()
    rule.observe(ledger_event("access", configured(1)))
    assert rule.lanes == {}


@pytest.mark.parametrize("is_known", [True, False])
def test_time_that_did_not_pass_frees_no_window(is_known: bool) -> None:
    """Times of the ledger are an hour later behind a step; the service forgets nothing by it."""
    minute = configured(60, memory="window", period_s=3600.0)
    used = [queued("r1"), started("r1"), finished("r1", 30)]
    step = [EndpointClockStepped(endpoint="chat", by_ms=8_000_000)] if is_known else []
    passed = details(minute, *used, *step, queued("r2"), step_ms=4_000_000)
    assert bool(passed) == is_known
