"""Waits between attempts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.backoff import Backoff


@given(st.floats(0.1, 300), st.lists(st.floats(0, 1, exclude_max=True), max_size=80))
def test_waits_grow_to_the_limit_and_vary_by_half(longest_s: float, chances: list[float]) -> None:
    backoff = Backoff()
    for attempt, chance in enumerate(chances):
        whole_s = min(longest_s, 0.1 * 2 ** min(attempt, 30))
        wait_s = backoff.next_s(longest_s, chance)
        assert whole_s / 2 <= wait_s <= whole_s


def test_a_success_begins_anew() -> None:
    backoff = Backoff()
    first_s = backoff.next_s(10.0, 0.0)
    assert backoff.next_s(10.0, 0.0) > first_s
    backoff.reset()
    assert backoff.next_s(10.0, 0.0) == first_s
