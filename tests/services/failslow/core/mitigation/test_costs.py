"""Costs and effects of levels are learned from those that were applied."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.costs import CostBook


def test_assumed_figures_hold_until_others_are_observed() -> None:
    book = CostBook()
    assert book.of("restart").cost_s == 300
    book.note("restart", 100, 0.0)
    assert book.of("restart").cost_s == pytest.approx(250)
    assert book.of("migrate").cost_s == 120


def test_figures_follow_a_change() -> None:
    book = CostBook()
    for _ in range(60):
        book.note("migrate", 30, 0.0)
    assert book.of("migrate").cost_s == pytest.approx(30, abs=1)
    for _ in range(60):
        book.note("migrate", 90, 0.0)
    assert book.of("migrate").cost_s == pytest.approx(90, abs=1)


def test_implausible_figures_are_bounded() -> None:
    book = CostBook()
    book.note("redistribute", -5, 7)
    assert book.of("redistribute").cost_s == pytest.approx(3.75)
    assert book.of("redistribute").leaves <= 1


def test_the_assumption_of_the_pool_counts_until_others_are_observed() -> None:
    book = CostBook(assumed_s={"migrate": 10})
    assert book.of("migrate").cost_s == 10
    book.note("migrate", 50)
    assert book.of("migrate").cost_s == pytest.approx(20)
    assert book.of("migrate").leaves == 0
