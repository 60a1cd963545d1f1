"""The interval of a gain: exact where it must be, and as wide as the blocks make it."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.metrics.bootstrap import DAY_S, days, draws, gain, gain_at


def test_a_gain_that_every_job_has_is_certain() -> None:
    base = np.random.default_rng(1).exponential(100, 500)
    result = gain(base, base * 0.25, np.arange(500) // 25)
    assert result.gain == pytest.approx(-0.75)
    assert result.low == pytest.approx(-0.75)
    assert result.high == pytest.approx(-0.75)
    assert result.blocks == 20


def test_pairing_is_by_block_not_by_job() -> None:
    """Noise between blocks that both have alike widens nothing; noise of one alone does."""
    draw = np.random.default_rng(2)
    block = np.repeat(np.arange(30), 20)
    level = draw.exponential(1, 30)[block]
    both = gain(level, level * 0.5, block)
    alone = gain(level, np.full(600, 0.5), block)
    assert both.high - both.low < 1e-9
    assert alone.high - alone.low > 0.1


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(3)
    block = np.repeat(np.arange(60), 5)
    hits = 0
    for seed in range(200):
        base, ours = draw.exponential(10, 300), draw.exponential(5, 300)
        result = gain(base, ours, block, resamples=1000, seed=seed)
        hits += result.low <= -0.5 <= result.high
    assert 178 <= hits <= 199


def test_the_same_seed_gives_the_same_interval() -> None:
    base, ours = np.random.default_rng(4).exponential(10, (2, 100))
    block = np.arange(100) // 10
    assert gain(base, ours, block, seed=5) == gain(base, ours, block, seed=5)
    assert gain(base, ours, block, seed=5) != gain(base, ours, block, seed=6)


def test_a_resample_takes_as_many_blocks_as_there_are() -> None:
    assert (draws(12, 1000, 0).sum(axis=1) == 12).all()


def test_a_gain_at_a_quantile_is_of_that_quantile() -> None:
    base = np.arange(1.0, 101.0)
    result = gain_at(base, base * 2, np.zeros(100, np.int64), 0.9)
    assert (result.base, result.ours, result.gain) == (90.0, 180.0, 1.0)


def test_days_are_counted_from_the_first_submit() -> None:
    assert days(np.array([5.0, 5.0 + DAY_S - 1, 5.0 + DAY_S, 3 * DAY_S])).tolist() == [0, 0, 1, 2]


def test_nothing_has_no_gain() -> None:
    with pytest.raises(ValueError, match="at least one job"):
        gain(np.empty(0), np.empty(0), np.empty(0, np.int64))
    assert gain(np.zeros(3), np.zeros(3), np.arange(3)).gain == 0.0
