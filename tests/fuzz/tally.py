"""How much was tried: a test that passes in silence says nothing of its size."""

from __future__ import annotations

from collections import Counter

TRIED: Counter[str] = Counter()
PATH_VARIABLE = "BERTH_FUZZ_TALLY"
"""Names the file in which the counts of a test run are left."""


def tally(what: str, number: int = 1) -> None:
    TRIED[what] += number
