"""Engines have the time since when they are there or away; a budget counts from when it was set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.contracts.base import Event
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted, TokenBudget, Upstream
from shared.contracts.llm import CountersRebased, EndpointCapacityNoted, EngineStanding
from shared.projections.ledger_events import NotFolded
from shared.projections.llm_endpoints import LlmEndpointRow, fold_llm_endpoint
from tests.shared.ledger_events import AT, ledger_event

WINDOW = TokenBudget(holder="tenant", unit="tokens", limit=100, memory="window", period_s=60)
ONCE = TokenBudget(holder="user", unit="money", limit=5)


def row() -> LlmEndpointRow:
    return LlmEndpointRow("0/chat", 0, "chat")


def fold(row: LlmEndpointRow, at: int, event: Event) -> LlmEndpointRow:
    fold_llm_endpoint(row, ledger_event("throttle", event, at=at))
    return row


def noted(**available: bool) -> EndpointCapacityNoted:
    engines = (
        EngineStanding(name=name, available=is_there, reason="" if is_there else "gone")
        for name, is_there in available.items()
    )
    return EndpointCapacityNoted(endpoint="chat", requests=1, engines=tuple(engines))


def configured(*budgets: TokenBudget, names: str = "ab") -> EndpointConfigured:
    upstreams = tuple(Upstream(name=name, url=f"http://{name}:1") for name in names)
    return EndpointConfigured(endpoint="chat", partition=0, budgets=budgets, upstreams=upstreams)


def engines(row: LlmEndpointRow) -> dict[str, tuple[bool, int]]:
    loaded: list[dict[str, Any]] = json.loads(row.engines)
    return {engine["name"]: (engine["available"], engine["since"]) for engine in loaded}


def test_an_engine_keeps_its_time_until_it_comes_or_goes() -> None:
    here = fold(row(), AT, noted(a=True, b=True))
    fold(here, AT + 10, noted(a=True, b=False))
    fold(here, AT + 20, noted(a=True, b=False))
    assert engines(here) == {"a": (True, AT), "b": (False, AT + 10)}
    assert here.noted_at == AT + 20
    fold(here, AT + 30, EndpointCapacityNoted(endpoint="chat", requests=0))
    assert here.noted_at == AT + 20, "a note without engines says nothing of them"


def test_an_engine_that_the_endpoint_has_no_more_is_not_shown() -> None:
    here = fold(row(), AT, noted(a=True, b=True))
    fold(here, AT + 10, configured(names="b"))
    assert engines(here) == {"b": (True, AT)}


def test_a_budget_counts_from_when_it_was_set_also_with_another_limit() -> None:
    here = fold(row(), AT, configured(WINDOW))
    wider = WINDOW.model_copy(update={"limit": 900})
    fold(here, AT + 10, configured(wider, ONCE))
    expected = {WINDOW.account: AT, ONCE.account: AT + 10}
    assert json.loads(here.budgets_since) == expected
    longer = WINDOW.model_copy(update={"period_s": 120})
    fold(here, AT + 20, configured(longer))
    assert json.loads(here.budgets_since) == {longer.account: AT + 20}


def test_nothing_is_kept_of_a_deleted_endpoint() -> None:
    here = fold(row(), AT, configured(WINDOW))
    fold(here, AT + 1, noted(a=True))
    fold(here, AT + 2, EndpointDeleted(endpoint="chat", partition=0))
    assert here == row()
    fold(here, AT + 3, configured(WINDOW))
    assert json.loads(here.budgets_since) == {WINDOW.account: AT + 3}


def test_another_event_is_not_folded() -> None:
    with pytest.raises(NotFolded):
        fold(row(), AT, CountersRebased(endpoint="chat"))
