"""The text of a spent budget has its figures, and says when a retry may succeed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.throttle.core.disciplines.meters import HalfLife, Memory, SlidingWindow
from services.throttle.core.disciplines.seam import Throttled
from services.throttle.core.disciplines.spent import SpentBudget, describe_memory, number

WINDOW = SpentBudget("user", "mia", "tokens", 1000, SlidingWindow(60_000), 900, 50, 200, 42_000)


def test_a_spent_budget_is_named_with_all_figures() -> None:
    refusal = WINDOW.refusal
    assert refusal == Throttled("user_tokens", 42_000)
    assert refusal.detail == (
        "budget of user 'mia': 1000 tokens within 60 s, 900 used, 50 held by open requests, "
        "200 needed; enough is free again in 42 s"
    )


def test_requests_without_a_user_share_a_budget_that_says_so() -> None:
    assert "budget of requests that name no user: 1000" in replace(WINDOW, name="").refusal.detail


def test_a_request_above_the_whole_budget_has_its_own_reason_for_good() -> None:
    refusal = replace(WINDOW, price=1001.0).refusal
    assert refusal == Throttled("above_budget", None)
    assert "1001 needed; it is larger than the whole budget" in refusal.detail


def test_a_budget_in_all_is_spent_for_good_unless_open_requests_hold_it() -> None:
    spent = replace(WINDOW, memory=HalfLife(), free_after_ms=86_400_000)
    assert spent.refusal == Throttled("user_tokens", None)
    assert "1000 tokens in all" in spent.refusal.detail
    held = replace(spent, used=100.0, held=850.0)
    assert held.refusal == Throttled("user_tokens", 1_000)


def test_what_open_requests_hold_is_free_when_they_end() -> None:
    refusal = replace(WINDOW, used=0.0, held=950.0, free_after_ms=None).refusal
    assert refusal == Throttled("user_tokens", 1_000)
    assert refusal.detail.endswith("some may be free when open requests end")


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        (SlidingWindow(60_000), "within 60 s"),
        (HalfLife(604_800_000), "with a half-life of 604800 s"),
        (HalfLife(), "in all"),
    ],
)
def test_memories_have_words(memory: Memory, text: str) -> None:
    assert describe_memory(memory) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1e6, "1000000"), (0.00125, "0.0013"), (0.5, "0.5"), (0, "0"), (10, "10")]
)
def test_numbers_have_no_exponent(value: float, text: str) -> None:
    assert number(value) == text
