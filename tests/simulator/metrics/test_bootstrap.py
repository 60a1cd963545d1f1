"""The interval of a gain: exact where it must be, and wide enough for dependent series."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.metrics.bootstrap import block_length, gain, gain_at, hours
from simulator.metrics.outcome import Floats


def autoregressive(draw: np.random.Generator, units: int, correlation: float) -> Floats:
    """Return a series of variance 1 in which neighbours have this correlation."""
    noise = draw.normal(0, math.sqrt(1 - correlation**2), units)
    series = np.empty(units)
    series[0] = draw.normal()
    for at in range(1, units):
        series[at] = correlation * series[at - 1] + noise[at]
    return series


def test_a_gain_that_every_job_has_is_certain() -> None:
    base = np.random.default_rng(1).exponential(100, 500)
    result = gain(base, base * 0.25, np.arange(500) // 25)
    assert result.gain == pytest.approx(-0.75)
    assert result.low == pytest.approx(-0.75)
    assert result.high == pytest.approx(-0.75)


def test_jobs_are_paired() -> None:
    """Noise between units that both sides have alike widens nothing; noise of one alone does."""
    draw = np.random.default_rng(2)
    unit = np.repeat(np.arange(30), 20)
    level = draw.exponential(1, 30)[unit]
    both = gain(level, level * 0.5, unit)
    alone = gain(level, np.full(600, 0.5), unit)
    assert both.high - both.low < 1e-9
    assert alone.high - alone.low > 0.1


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.88), (0.8, 0.88), (0.95, 0.85)])
def test_series_of_known_gain_are_covered_about_as_often_as_the_interval_says(
    correlation: float, least: float
) -> None:
    draw = np.random.default_rng(3)
    truth = 0.5 * math.exp((0.6**2 + 0.4**2 - 1) / 2) - 1
    covered = 0
    for seed in range(150):
        shared, own = (autoregressive(draw, 700, correlation) for _ in range(2))
        base, ours = np.exp(shared), 0.5 * np.exp(0.6 * shared + 0.4 * own)
        result = gain(base, ours, np.arange(700), resamples=400, seed=seed)
        covered += result.low <= truth <= result.high
    assert least <= covered / 150 <= 0.995


def test_a_block_is_as_long_as_the_series_remembers() -> None:
    draw = np.random.default_rng(4)
    lengths = [
        float(np.median([block_length(autoregressive(draw, 1000, phi)) for _ in range(20)]))
        for phi in (0.0, 0.5, 0.9)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < 4
    # The best length of an autoregression of one lag is (6 phi^2 / (1 - phi^2)^2 n)^(1/3): 9.
    assert 5 < lengths[1] < 18
    assert block_length(np.full(100, 3.0)) == 1.0
    assert block_length(np.arange(3.0)) == 1.0


def test_overlapping_batches_are_not_taken_as_independent() -> None:
    """Averages of eight units in a row, one per unit, know no more than the units themselves."""
    draw = np.random.default_rng(5)
    units = draw.exponential(1, (2, 807))
    overlapping = np.array([np.convolve(side, np.ones(8) / 8, "valid") for side in units])
    distinct = overlapping[:, ::8]
    wide = gain(distinct[0], distinct[1], np.arange(distinct.shape[1]))
    narrow = gain(overlapping[0], overlapping[1], np.arange(overlapping.shape[1]))
    assert narrow.block_units > 8
    assert narrow.high - narrow.low > 0.6 * (wide.high - wide.low)


def test_the_same_seed_gives_the_same_interval() -> None:
    base, ours = np.random.default_rng(4).exponential(10, (2, 100))
    unit = np.arange(100) // 10
    assert gain(base, ours, unit, seed=5) == gain(base, ours, unit, seed=5)
    assert gain(base, ours, unit, seed=5) != gain(base, ours, unit, seed=6)


def test_a_gain_at_a_quantile_is_of_that_quantile() -> None:
    base = np.arange(1.0, 101.0)
    result = gain_at(base, base * 2, np.zeros(100, np.int64), 0.9)
    assert (result.base, result.ours, result.gain) == (90.0, 180.0, 1.0)
    draw = np.random.default_rng(6).exponential(1, (2, 600))
    noisy = gain_at(draw[0], draw[1], np.arange(600) // 10, 0.9)
    assert noisy.low < noisy.gain < noisy.high


def test_an_interval_that_nothing_supports_is_not_a_number() -> None:
    one_unit = gain(np.arange(1.0, 9.0), np.arange(2.0, 10.0), np.zeros(8, np.int64))
    assert math.isnan(one_unit.low) and math.isnan(one_unit.high)


def test_hours_are_counted_from_the_begin_of_the_window() -> None:
    assert hours(np.array([50.0, 3649.0, 3650.0, 10_850.0]), 50.0).tolist() == [0, 0, 1, 3]


def test_nothing_has_no_gain() -> None:
    with pytest.raises(ValueError, match="at least one job"):
        gain(np.empty(0), np.empty(0), np.empty(0, np.int64))
    assert gain(np.zeros(3), np.zeros(3), np.arange(3)).gain == 0.0
