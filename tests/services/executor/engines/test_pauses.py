"""Pauses grow up to a bound, and are not alike in all executors."""

from __future__ import annotations

from services.executor.engines.pauses import LONGEST_PAUSE_S, about_s, pause_s


def test_pauses_grow_up_to_a_bound() -> None:
    pauses = [pause_s(in_vain) for in_vain in range(1, 8)]
    assert pauses == [0.5, 1, 2, 4, 8, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert pause_s(10**6) == LONGEST_PAUSE_S


def test_a_pause_is_about_as_long() -> None:
    lengths = {about_s(8.0) for _ in range(20)}
    assert len(lengths) > 1 and min(lengths) >= 6.0 and max(lengths) <= 10.0
