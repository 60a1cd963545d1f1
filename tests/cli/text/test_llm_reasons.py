"""A request in words: its wait, its end and its charge, each with its numbers."""

from __future__ import annotations

import pytest

from cli.text.llm_reasons import OUTCOMES, REASONS, reason_words, request_lines
from shared.projections.llm import LlmRequestRow

AT = 1_700_000_000_000
QUEUED = {
    "endpoint": "meta/L",
    "model": "chat",
    "stage": 1,
    "ahead": 4,
    "wait_s": 1.5,
    "prompt_tokens": 10,
    "max_output_tokens": 50,
    "queued_at": AT,
    "state": "queued",
}
STARTED = {**QUEUED, "state": "running", "started_at": AT + 900, "waited_ms": 900}
FINISHED = {
    **STARTED,
    "state": "finished",
    "outcome": "completed",
    "output_tokens": 7,
    "cached_tokens": 4,
    "cost": 0.25,
    "served_ms": 700,
    "upstream": "a",
    "ended_at": AT + 1600,
}


def lines_of(**fields: object) -> list[str]:
    row = LlmRequestRow("k", 0, "r")
    document = {name: getattr(row, name) for name in LlmRequestRow.__slots__}
    return list(request_lines({**document, **fields}))


def test_a_waiting_request_has_its_place_and_its_estimate() -> None:
    arrival, wait = lines_of(**QUEUED)
    assert "queued at meta/L as chat behind 4 requests, call 2 of its interaction" in arrival
    assert "10 prompt tokens, at most 50 output tokens, estimated wait 1.5 s" in arrival
    assert wait.startswith("has waited for ")


def test_a_wait_that_could_not_be_estimated_is_unknown() -> None:
    assert "estimated wait unknown" in lines_of(**QUEUED | {"wait_s": None})[0]


def test_a_running_request_has_its_wait_beside_the_estimate() -> None:
    _, start, run = lines_of(**STARTED)
    assert start.endswith("started: it had waited 0.9 s after an estimate of 1.5 s")
    assert run.startswith("has run for ")


def test_a_finished_request_has_its_charge() -> None:
    *_, end, charge = lines_of(**FINISHED)
    assert end.endswith("answered completely, after 0.7 s by upstream a")
    assert charge == (
        "charged: 10 prompt tokens (4 of them cached by the engine), 7 output tokens, cost 0.25"
    )


def test_a_failed_request_has_its_reason() -> None:
    *_, end, _ = lines_of(**FINISHED | {"outcome": "failed", "reason": "engine_error"})
    assert "its engine failed (engine_error), after 0.7 s" in end
    assert set(OUTCOMES) == {"completed", "cancelled", "failed", "lost"}


@pytest.mark.parametrize("reason", [*REASONS, "of_a_later_release"])
def test_a_rejected_request_has_reason_detail_and_the_time_of_a_retry(reason: str) -> None:
    fields = {"state": "rejected", "ended_at": AT, "reason": reason}
    [line] = lines_of(**fields, detail="field: 'x': rule", retry_after_s=2.5)
    assert f"rejected, {reason}: " in line and "(field: 'x': rule)" in line
    assert line.endswith("; a retry may succeed after 2.5 s")
    [line] = lines_of(**fields)
    assert "retry may" not in line


def test_the_budget_that_is_spent_is_named() -> None:
    words = "the budget of its user in money is spent; `berth llm limits` shows what is left"
    assert reason_words("user_money") == words
