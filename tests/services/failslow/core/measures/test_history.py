"""The usual pace of a series is that of its last runs; a change that is meant becomes usual."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import pytest

from services.failslow.core.measures import history
from services.failslow.core.measures.history import KEPT, LEAST_SPREAD, PaceBook
from shared.contracts.paces import PaceLearned


def book(paces_s: Sequence[float], series: str = "s", *, has_work: bool = True) -> PaceBook:
    runs = PaceBook()
    for number, pace_s in enumerate(paces_s):
        runs.note(learned(pace_s, series, number, has_work=has_work))
    return runs


def learned(
    pace_s: float, series: str = "s", number: int = 0, *, has_work: bool = True
) -> PaceLearned:
    return PaceLearned(
        series=series, job_id=f"j{number}", attempt=1, pace_s=pace_s, has_work=has_work
    )


def test_too_few_runs_say_nothing() -> None:
    assert book([1.0, 1.0]).usual("s", has_work=True) is None
    assert book([1.0] * 9).usual("other", has_work=True) is None


def test_runs_with_and_without_work_are_not_compared() -> None:
    assert book([1.0] * 9).usual("s", has_work=False) is None


def test_equal_runs_leave_a_least_spread() -> None:
    usual = book([2.0] * 3).usual("s", has_work=True)
    assert usual is not None
    assert exp(usual.level) == pytest.approx(2.0)
    assert (usual.spread, usual.runs) == (LEAST_SPREAD, 3)
    assert usual.is_exceeded_by(log(2.0 * 1.21))
    assert not usual.is_exceeded_by(log(2.0 * 1.19))


def test_runs_that_differ_need_a_wider_gap() -> None:
    usual = book([1.0, 1.3, 0.7, 1.2, 0.8]).usual("s", has_work=True)
    assert usual is not None
    assert not usual.is_exceeded_by(log(2.0))
    assert usual.is_exceeded_by(log(4.0))


def test_a_pace_that_stays_becomes_usual() -> None:
    usual = book([1.0] * KEPT + [1.5] * 3).usual("s", has_work=True)
    assert usual is not None
    assert exp(usual.level) == pytest.approx(1.5)


def test_the_series_that_ran_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_SERIES", 2)
    runs = book([1.0] * 3)
    for series in ("t", "s", "u"):
        runs.note(learned(1.0, series))
    assert runs.usual("s", has_work=True) is not None
    assert len(runs._runs) == 2
