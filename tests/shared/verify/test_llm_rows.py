"""The fold of LLM requests, tenants and hours, compared with rows."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.base import Event
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
    TokensMade,
)
from shared.projections.llm_usage import HOUR_MS, KEPT_HOURS_MS, KEPT_REQUESTS_MS
from shared.verify.llm_rows import LlmRowsRule, equal
from shared.verify.row_store import Figures, RowStore
from tests.shared.ledger_events import AT, ledger_event
from tests.shared.verify.rows import stored_rows

HOUR = AT - AT % HOUR_MS
FULL = LlmRequestRejected(request_id="r2", tenant="red", reason="queue_full")


def served(request_id: str = "r1", **fields: Any) -> list[Event]:
    named = {"request_id": request_id, "tenant": "red"}
    given = {**named, "prompt_tokens": 9, "output_tokens": 7, "cost": 0.5, **fields}
    return [
        LlmRequestQueued(**named, endpoint="chat", prompt_tokens=10, max_output_tokens=50),
        LlmRequestStarted(**named),
        LlmRequestFinished.model_validate(given),
    ]


def stored() -> dict[str, dict[str, Figures]]:
    """The rows of a right projector."""
    sums = (1, 1, 9, 7, 7, 0.5)
    return {
        "llm_request": {
            "0/red/r1": ("finished", "cancelled", "gone", 9, 7, 0.5, AT),
            "0/red/r2": ("rejected", "", "queue_full", 0, 0, 0.0, AT),
        },
        "llm_tenant": {"0/red": sums},
        "llm_usage": {f"0/{HOUR}/red": sums},
        "llm_open": {},
    }


def violations(
    rows: dict[str, dict[str, Figures]], events: list[tuple[int, Event]], last_seq: int = 100
) -> list[str]:
    rule = LlmRowsRule(stored_rows(rows), {("throttle", 0): last_seq})
    for seq, (at, event) in enumerate(events, start=1):
        rule.observe(ledger_event("throttle", event, seq=seq, at=at))
    return [violation.position for violation in rule.finish()]


EVENTS = [(AT, event) for event in (*served(outcome="cancelled", reason="gone"), FULL)]


def test_right_rows_are_equal() -> None:
    assert violations(stored(), EVENTS) == []


@pytest.mark.parametrize(
    ("table", "key", "row"),
    [
        ("llm_request", "0/red/r1", ("finished", "completed", "", 9, 7, 0.5, AT)),
        ("llm_request", "0/red/r3", ("queued", "", "", 1, 0, 0.0, 0)),
        ("llm_open", "0/r3", ("red", False, 0)),
        ("llm_tenant", "0/red", (1, 1, 9, 7, 7, 0.6)),
        ("llm_usage", f"0/{HOUR}/red", (2, 1, 9, 7, 7, 0.5)),
    ],
)
def test_a_wrong_row_is_named(table: str, key: str, row: Figures) -> None:
    rows = stored()
    rows[table][key] = row
    assert violations(rows, EVENTS) == [f"{table} {key}"]


def test_a_missing_row_is_named() -> None:
    rows = stored()
    del rows["llm_request"]["0/red/r2"]
    assert violations(rows, EVENTS) == ["llm_request 0/red/r2"]


def test_events_behind_the_cursor_are_not_expected() -> None:
    empty: dict[str, dict[str, Figures]] = {name: {} for name in stored()}
    assert violations(empty, EVENTS, last_seq=0) == []


def test_what_the_projector_has_dropped_is_not_expected() -> None:
    later = AT + KEPT_HOURS_MS + 2 * HOUR_MS
    assert later > AT + KEPT_REQUESTS_MS
    rule = LlmRowsRule(RowStore(), {("throttle", 0): 100})
    for at, event in [*EVENTS, *((later, event) for event in served("r9"))]:
        rule.observe(ledger_event("throttle", event, at=at))
    assert [key for key, _ in rule.kept.rows("llm_request")] == ["0/red/r9"]
    assert len(rule.hours) == 1
    assert rule.tenants["0/red"].requests == 2


def test_an_open_request_has_what_it_made() -> None:
    rows: dict[str, dict[str, Figures]] = {name: {} for name in stored()}
    queued, started, _ = served("r5")
    made = TokensCharged(endpoint="chat", made=(TokensMade(request_id="r5", tokens=4),))
    rows["llm_request"]["0/red/r5"] = ("running", "", "", 10, 0, 0.0, 0)
    rows["llm_open"]["0/r5"] = ("red", True, 4)
    assert violations(rows, [(AT, event) for event in (queued, started, made)]) == []
    assert violations(rows, [(AT, queued), (AT, started)]) == ["llm_open 0/r5"]


def test_money_may_differ_in_its_last_digits() -> None:
    assert equal((1, 0.1 + 0.2), (1, 0.3))
    assert not equal((1, 0.3), (1, 0.31))
    assert not equal(None, (1, 0.3))
