"""Many intervals on a page are counted beside those that chance alone would give."""

from __future__ import annotations

from benchmarks.parts.by_chance import count_by_chance, show_ends


def test_intervals_without_a_width_are_no_comparisons() -> None:
    intervals = [(-0.2, -0.1), (-0.1, 0.1), (0.05, 0.2), (0.1, 0.3), (0.0, 0.0), (None, None)]
    sentence = count_by_chance(intervals)
    assert "of 4, 1 lie below 0 and 2 above it" in sentence
    assert "about 0.1 would" in sentence


def test_an_interval_is_shown_only_where_something_differed() -> None:
    assert show_ends(-0.2, 0.1) == " (-20% to +10%)"
    assert show_ends(0.0, 0.0) == " (all alike)"
    assert show_ends(None, None) == ""
