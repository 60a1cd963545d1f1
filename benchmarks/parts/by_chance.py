"""Intervals of 95 % of many comparisons on one page: how many of them exclude 0 by chance alone."""

from __future__ import annotations

from collections.abc import Iterable

TAIL = 0.025
"""Share of such intervals that lie on one side of 0 where nothing differs."""
Ends = tuple[float | None, float | None]


def is_interval(low: float | None, high: float | None) -> bool:
    """Return whether the ends say something: without a width nothing differed."""
    return low is not None and high is not None and low < high


def count_by_chance(intervals: Iterable[Ends]) -> str:
    """Return a sentence with the intervals on either side of 0, and those to expect by chance."""
    known = [(low, high) for low, high in intervals if low is not None and high is not None]
    wide = [(low, high) for low, high in known if is_interval(low, high)]
    below, above = sum(high < 0 for _, high in wide), sum(low > 0 for low, _ in wide)
    return (
        f"\nEach interval is read by itself: of {len(wide)}, {below} lie below 0 and {above} above "
        f"it. If nothing differed, about {TAIL * len(wide):.1f} would on either side.\n"
    )


def show_ends(low: float | None, high: float | None) -> str:
    """Return an interval as percentages behind a gain; empty where there is none."""
    if low is None or high is None:
        return ""
    return f" ({low:+.0%} to {high:+.0%})" if is_interval(low, high) else " (all alike)"
