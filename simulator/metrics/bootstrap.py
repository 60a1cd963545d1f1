"""Paired bootstrap of a gain over units of time: the hours of a replay, or a sequence of batches.

Units near in time share a queue, so they are drawn in circular blocks (Politis and Romano 1992).
The length of a block is twice the one that the autocorrelation gives (Politis and White 2004, with
the correction of Patton, Politis and White 2009): with that factor, simulated series of known gain
are covered about as often as the interval says (`tests/simulator/metrics/test_bootstrap.py`). Both
policies get the same draws, which pairs them. The interval of a mean is studentised on the
logarithm of the ratio, because a mean of waits is skewed and its variance grows with it.

Units longer apart than the series is long cannot be seen: where a queue takes weeks to drain, the
interval of a window of weeks is too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simulator.metrics.outcome import HOUR_S, Floats, Ints

RESAMPLES = 2000
LEVEL = 0.95
WIDENED = 2.0
"""Length of a block over the one that the autocorrelation gives."""
FEWEST_BLOCKS = 4
WIDEST = math.log(1000.0)
"""Half an interval on the logarithm beyond which it says nothing: a few hours have all waits."""
LEAST_ERROR = 0.25
"""Error of a resample over that of the series, at least: where few units differ, many resamples
have none of them."""
LEAST_SHARE = 1e-9
"""Share of a total below which a resample's total counts as this much: its logarithm is finite."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Ratio of means minus 1 (-0.8: four fifths less), and the bootstrap's interval about it.

    `low` and `high` are NaN where there are fewer than two units, one side is 0 in all, or so few
    units count that the interval would have a factor above a thousand.
    """

    base: float
    ours: float
    gain: float
    low: float
    high: float
    block_units: int
    """Length of a block."""


def hours(submit_s: Floats, from_s: float) -> Ints:
    """Return the unit of each job: its hour, counted from `from_s`."""
    hour: Ints = ((submit_s - from_s) // HOUR_S).astype(np.int64)
    return hour


def block_length(series: Floats) -> float:
    """Return the length of circular blocks for the mean of `series` [n], in units, at least 1.

    The rule of Politis and White: autocovariances up to twice the lag after which they are noise,
    weighted by a flat-top window.
    """
    n = len(series)
    if n < FEWEST_BLOCKS:
        return 1.0
    centred = series - series.mean()
    noisy_lags = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = min(math.ceil(math.sqrt(n)) + noisy_lags, n - 1)
    lags = range(min(most + noisy_lags + 1, n))
    covariances = np.array([centred[lag:] @ centred[: n - lag] / n for lag in lags])
    if covariances[0] <= 0.0:
        return 1.0
    taken = min(2 * max(_last_correlated_lag(covariances, n, most, noisy_lags), 1), most)
    lag = np.arange(1, taken + 1)
    weighted = np.minimum(1.0, 2.0 * (1.0 - lag / taken)) * covariances[1 : taken + 1]
    variance = covariances[0] + 2.0 * weighted.sum()
    if variance <= 0.0:
        return 1.0
    slope = 2.0 * (lag * weighted).sum()
    length = (1.5 * n * (slope / variance) ** 2) ** (1 / 3)
    return float(np.clip(length, 1.0, math.ceil(min(3.0 * math.sqrt(n), n / 3))))


def _last_correlated_lag(covariances: Floats, n: int, most: int, noisy_lags: int) -> int:
    """Return the lag after which `noisy_lags` autocorrelations in a row are below the noise."""
    noise = 2.0 * math.sqrt(math.log10(n) / n) * covariances[0]
    for lag in range(most):
        following = np.abs(covariances[lag + 1 : lag + 1 + noisy_lags])
        if (following < noise).all():
            return lag
    return most


def gain(
    base: Floats,
    ours: Floats,
    unit: Ints,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Gain:
    """Return the gain of the mean of `ours` [n] over that of `base` [n]; job i of both is the
    same job, of the unit of time `unit[i]`.

    Raises ValueError for no jobs. A base of 0 counts as no gain.
    """
    if not len(base):
        raise ValueError("a gain needs at least one job")
    sums = _sums(base, unit), _sums(ours, unit)
    whole = float(base.mean()), float(ours.mean())
    ratio = _ratio(*whole)
    length = _length(*sums)
    if min(whole) <= 0.0 or len(sums[0]) < 2:
        return Gain(*whole, ratio - 1.0, math.nan, math.nan, length)
    low, high = _studentised(*sums, length, resamples, seed, level)
    return Gain(*whole, ratio - 1.0, low - 1.0, high - 1.0, length)


def gain_at(
    base: Floats,
    ours: Floats,
    unit: Ints,
    quantile: float,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Gain:
    """Return the gain as `gain` does, of a quantile in (0, 1) instead of the mean.

    Its interval holds the percentiles of the resampled ratios; blocks are as long as for the mean.
    """
    if not len(base):
        raise ValueError("a gain needs at least one job")
    length = _length(_sums(base, unit), _sums(ours, unit))
    units = int(unit.max()) + 1
    everything = np.ones((1, units))
    whole = [float(_quantiles(side, unit, everything, quantile)[0]) for side in (base, ours)]
    ratio = _ratio(*whole)
    if min(whole) <= 0.0 or units < 2:
        return Gain(whole[0], whole[1], ratio - 1.0, math.nan, math.nan, length)
    taken = _taken(units, length, resamples, seed)
    drawn = [_quantiles(side, unit, taken, quantile) for side in (base, ours)]
    tail = 50 * (1 - level)
    ratios = drawn[1] / np.maximum(drawn[0], LEAST_SHARE * whole[0])
    low, high = np.percentile(ratios, (tail, 100 - tail), method="nearest")
    return Gain(whole[0], whole[1], ratio - 1.0, float(low) - 1.0, float(high) - 1.0, length)


def _sums(values: Floats, unit: Ints) -> Floats:
    """Return the sum of each unit."""
    return np.bincount(unit, values).astype(np.float64)


def _length(base: Floats, ours: Floats) -> int:
    """Return the length of a block for the ratio of two series' sums."""
    total = base.sum()
    influence = ours - (ours.sum() / total if total > 0 else 0.0) * base
    longest = max(1, len(base) // FEWEST_BLOCKS)
    return min(longest, math.ceil(WIDENED * block_length(influence)))


def _starts(units: int, length: int, resamples: int, seed: int) -> Ints:
    """Return the first unit of each block of each resample, [resamples, blocks]."""
    blocks = max(2, round(units / length))
    return np.random.default_rng(seed).integers(0, units, (resamples, blocks))


def _studentised(
    base: Floats, ours: Floats, length: int, resamples: int, seed: int, level: float
) -> tuple[float, float]:
    """Return the ends of the interval of the ratio of the sums of two series [units]."""
    starts = _starts(len(base), length, resamples, seed)
    blocks = starts.shape[1]
    ratio = ours.sum() / base.sum()
    base_blocks, our_blocks = _circular_sums(base, length), _circular_sums(ours, length)
    drawn_base, drawn_ours = base_blocks[starts], our_blocks[starts]
    total_base = np.maximum(drawn_base.sum(1), LEAST_SHARE * base.sum())
    total_ours = np.maximum(drawn_ours.sum(1), LEAST_SHARE * ours.sum())
    drawn = total_ours / total_base
    own = blocks / (blocks - 1)
    residuals = drawn_ours - drawn[:, None] * drawn_base
    errors = np.sqrt(own * (residuals**2).sum(1)) / total_ours
    error = math.sqrt(own * blocks * float(((our_blocks - ratio * base_blocks) ** 2).mean()))
    error /= blocks * float(our_blocks.mean())
    deviations = np.log(drawn / ratio)
    floor = LEAST_ERROR * error if error > 0 else 1.0
    scaled = deviations / np.maximum(errors, floor)
    tail = 50 * (1 - level)
    low, high = np.percentile(scaled, (tail, 100 - tail))
    if max(-low, high) * error > WIDEST:
        return math.nan, math.nan
    return ratio * math.exp(-high * error), ratio * math.exp(-low * error)


def _circular_sums(series: Floats, length: int) -> Floats:
    """Return the sum of the `length` units from each unit on; the first follow the last."""
    sums = np.concatenate(([0.0], np.cumsum(np.concatenate((series, series[:length])))))
    return sums[length : length + len(series)] - sums[: len(series)]


def _taken(units: int, length: int, resamples: int, seed: int) -> Floats:
    """Return how often each resample takes each unit, [resamples, units]."""
    starts = _starts(units, length, resamples, seed)
    members = (starts[:, :, None] + np.arange(length)) % units
    rows = [np.bincount(row.ravel(), minlength=units) for row in members]
    return np.array(rows, np.float64)


def _quantiles(values: Floats, unit: Ints, taken: Floats, quantile: float) -> Floats:
    """Return the least value up to which a share `quantile` of each resample's jobs lies."""
    order = np.argsort(values, kind="stable")
    sorted_unit = unit[order]
    values_at = np.empty(len(taken))
    for row, counts in enumerate(taken):
        cumulated = np.cumsum(counts[sorted_unit])
        at = np.searchsorted(cumulated, quantile * cumulated[-1])
        values_at[row] = values[order[min(int(at), len(order) - 1)]]
    return values_at


def _ratio(base: float, ours: float) -> float:
    if base > 0:
        return ours / base
    return math.inf if ours > 0 else 1.0
