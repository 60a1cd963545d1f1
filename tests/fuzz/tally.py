"""Counts of what a fuzzing test has tried: a passed test does not show its size."""

from __future__ import annotations

from collections import Counter

TRIED: Counter[str] = Counter()
PATH_VARIABLE = "BERTH_FUZZ_TALLY"
"""Variable with the path of the file to which a test run writes its counts."""


def tally(kind: str, number: int = 1) -> None:
    TRIED[kind] += number
