"""Survival of faults: observed ones, those that were left, and the prior."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.durations import (
    PRIOR_MEDIAN_S,
    REMEMBERED,
    DurationBook,
    ObservedFault,
    Survival,
)


def test_without_observations_the_prior_decides() -> None:
    survival = Survival.of([])
    assert survival.at(0) == 1
    assert survival.at(PRIOR_MEDIAN_S) == 0.5


def test_many_observations_outweigh_the_prior() -> None:
    survival = Survival.of([ObservedFault(120)] * 100)
    assert survival.at(100) == pytest.approx(1, abs=0.01)
    assert survival.at(130) == pytest.approx(0, abs=0.02)


def test_a_fault_that_was_left_counts_until_then() -> None:
    """Kaplan and Meier: of two left at risk after 20 s, one ends at 30 s."""
    faults = [
        ObservedFault(10),
        ObservedFault(20, ended=False),
        ObservedFault(30),
        ObservedFault(40),
    ]
    survival = Survival.of(faults)
    assert survival._after == pytest.approx((3 / 4, 3 / 8, 0))


def test_the_book_keeps_the_newest() -> None:
    book = DurationBook()
    for duration_s in range(REMEMBERED + 5):
        book.note(duration_s, ended=True)
    assert book.survival().count == REMEMBERED
    assert book.observed[0].duration_s == 5
