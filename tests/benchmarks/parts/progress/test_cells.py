"""Gains of reports, pooled over parts, and what they show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.parts.progress.cells import ComparedPart, ProgressCell, summarise, units_of
from benchmarks.parts.progress.replays import PartOutcome

HOURS = np.arange(400.0) * 900.0


def outcome(delay_s: list[float], lost_share: float = 0.0) -> PartOutcome:
    count = len(delay_s)
    ones = np.ones(count)
    return PartOutcome(HOURS[:count], np.array(delay_s), ones, ones, lost_share)


def cell_of(factors: tuple[float, ...], noise: float = 0.0) -> ProgressCell:
    draw = np.random.default_rng(1)
    base = draw.exponential(600.0, 400)
    reported = tuple(
        outcome(
            (base * factor * np.exp(noise * draw.standard_normal(400) - noise**2 / 2)).tolist(),
            0.02,
        )
        for factor in factors
    )
    part = ComparedPart("a#1", outcome(base.tolist(), 0.01), reported)
    return summarise("a", "gittins", [part])


def test_a_clear_gain_and_a_clear_loss_are_shown() -> None:
    less, more = cell_of((0.7, 0.8)), cell_of((1.3,))
    assert less.gain == pytest.approx(-0.25, abs=1e-4) and less.high < 0.0
    assert less.part_gains == {"a#1": [pytest.approx(-0.3), pytest.approx(-0.2)]}
    assert set(less.goals.values()) == {"met"}
    assert more.low > 0.0 and set(more.goals.values()) == {"not met"}
    assert (less.lost_share, less.reported_lost_share) == (0.01, 0.02)


def test_noise_shows_neither() -> None:
    cell = cell_of((1.0,), noise=0.5)
    assert cell.low < 0.0 < cell.high
    assert cell.goals == {
        "reports shorten waits": "not met",
        "reports do not lengthen waits": "met",
    }


def test_without_waits_nothing_is_shown() -> None:
    part = ComparedPart("a#1", outcome([0.0, 0.0]), (outcome([0.0, 0.0]),))
    cell = summarise("a", "gittins", [part])
    assert math.isnan(cell.high) and cell.part_gains == {"a#1": [0.0]}
    assert cell.goals["reports shorten waits"] == "not met"


def test_the_part_of_one_job_in_the_difference_is_shown() -> None:
    one = ComparedPart("a#1", outcome([10.0, 10.0, 10.0]), (outcome([40.0, 9.0, 10.0]),))
    assert one.largest_share == pytest.approx(30 / 31)


def test_hours_of_parts_follow_each_other() -> None:
    units = units_of([np.array([0.0, 3_600.0]), np.array([7.0, 8.0, 7_300.0])])
    assert units.tolist() == [0, 1, 2, 2, 4]
