"""Ratios of the figures of two trees."""

from __future__ import annotations

from benchmarks.parts.compare.ratios import Ratio, figures_of, ratios


def test_figures_are_the_numbers_by_their_path() -> None:
    result = {"bench": "a", "ok": True, "speed": {"skip": 2, "easy": 0.5}, "settings": {"jobs": 9}}
    assert dict(figures_of(result)) == {"speed.skip": 2.0, "speed.easy": 0.5}


def test_a_ratio_is_the_median_of_the_rounds_with_its_spread() -> None:
    base = [{"a": 10.0}, {"a": 20.0}, {"a": 40.0}]
    own = [{"a": 11.0}, {"a": 30.0}, {"a": 40.0}]
    assert ratios(base, own) == [Ratio("a", 20.0, 30.0, 1.1, 1.0, 1.5)]


def test_what_never_differs_or_is_missing_or_has_no_ratio_is_left_out() -> None:
    base = [{"same": 1.0, "gone": 1.0, "zero": 0.0}]
    own = [{"same": 1.0, "new": 1.0, "zero": 2.0}]
    assert ratios(base, own) == []
