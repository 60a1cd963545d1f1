"""Intervals of run times: quantiles within bins, and levels that follow the errors."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history.distributions import BINS, PRIOR, Floats, bin_of
from services.priority.core.history.history import History
from services.priority.core.history.intervals import (
    FARTHEST,
    LOG_ODDS,
    QUANTILES,
    IntervalCalibration,
    RunTimeInterval,
    bin_end_s,
    level_of,
    read_quantile_s,
)


def one_bin(at: int) -> Floats:
    p = np.zeros(BINS)
    p[at] = 1.0
    return p


def test_a_quantile_lies_within_its_bin_in_proportion() -> None:
    ended = np.add.accumulate(one_bin(10)).tolist()
    assert read_quantile_s(ended, 0.5) == pytest.approx(bin_end_s(10.5))
    assert bin_end_s(10) < read_quantile_s(ended, 0.1) < read_quantile_s(ended, 0.9) < bin_end_s(11)
    assert bin_of(read_quantile_s(ended, 0.5)) == 10


def test_without_ends_the_levels_are_the_asked_ones() -> None:
    calibration = IntervalCalibration()
    assert calibration.levels("red") == pytest.approx(QUANTILES)
    interval = calibration.interval("red", PRIOR)
    assert interval.p10_s == pytest.approx(bin_end_s(4.0), rel=0.01)
    assert interval.p90_s == pytest.approx(bin_end_s(36.0), rel=0.01)


def test_levels_move_towards_the_ends_that_were_missed() -> None:
    calibration = IntervalCalibration()
    given = RunTimeInterval(10.0, 100.0, 1000.0)
    for _ in range(200):
        calibration.learn("red", given, 5000.0)
    low, middle, high = calibration.levels("red")
    assert (low, middle, high) > QUANTILES and high > 0.92
    blue = calibration.levels("blue")
    assert QUANTILES[2] < blue[2] < high, "another tenant shares the pool's part alone"


def test_levels_are_bounded_and_in_order_whatever_ends() -> None:
    calibration = IntervalCalibration()
    for _ in range(20_000):
        calibration.learn("red", RunTimeInterval(1.0, 2.0, 3.0), 1e9)
    assert calibration.levels("red") == (level_of(FARTHEST),) * 3
    for _ in range(60_000):
        calibration.learn("red", RunTimeInterval(1.0, 2.0, 3.0), 0.5)
    levels = calibration.levels("red")
    assert levels == tuple(sorted(levels)) and levels[0] == level_of(-FARTHEST)


def test_the_interval_covers_its_claim_although_the_distribution_is_wrong() -> None:
    """Run times have 1.7 times the spread that the distribution says, and then half of it."""
    draw = np.random.default_rng(3)
    p = np.exp(-0.5 * ((np.arange(BINS) - 20.0) / 2.0) ** 2)
    calibration = IntervalCalibration()
    for spread, jobs in ((3.4, 12_000), (1.0, 12_000)):
        inside = []
        for _ in range(jobs):
            given = calibration.interval("red", p)
            ran_s = bin_end_s(20.5 + spread * float(draw.standard_normal()))
            inside.append(given.p10_s <= ran_s <= given.p90_s)
            calibration.learn("red", given, ran_s)
        assert np.mean(inside[-4000:]) == pytest.approx(0.8, abs=0.03)


def test_the_calibrated_median_equals_that_of_history_within_a_bin() -> None:
    history = History()
    for _ in range(400):
        history.learn("red", "ann", "train", 8.0, 3000.0)
    estimate = history.estimate("red", "ann", "train", 8.0)
    interval = IntervalCalibration().interval("red", estimate.p)
    assert bin_of(interval.p50_s) == bin_of(estimate.p50_s)
    assert len(LOG_ODDS) == len(interval)
