"""Paired bootstrap of a gain over blocks of jobs that were scheduled together.

Jobs of one day share its queue, so they are drawn together: days of a continuous replay, or whole
batches where windows are simulated apart. Both policies get the same draws, which pairs them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.metrics.outcome import Floats, Ints

DAY_S = 86_400.0
RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Gain:
    """Ratio of means minus 1 (-0.8: four fifths less), and the bootstrap's interval about it."""

    base: float
    ours: float
    gain: float
    low: float
    high: float
    blocks: int


def days(submit_s: Floats) -> Ints:
    """Return the block of each job: its day, counted from the first submit."""
    day: Ints = ((submit_s - submit_s.min()) // DAY_S).astype(np.int64)
    return day


def draws(blocks: int, resamples: int, seed: int) -> Floats:
    """Return how often each resample takes each block: [resamples, blocks], rows sum to
    `blocks`.
    """
    generator = np.random.default_rng(seed)
    return generator.multinomial(blocks, np.full(blocks, 1 / blocks), resamples).astype(np.float64)


def gain(
    base: Floats,
    ours: Floats,
    block: Ints,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Gain:
    """Return the gain of the mean of `ours` [n] over that of `base` [n]; job i of both is the
    same job.

    Raises ValueError for no jobs. A resample in which the base is 0 counts as no gain.
    """
    if not len(base):
        raise ValueError("a gain needs at least one job")
    names, block_index = np.unique(block, return_inverse=True)
    taken = draws(len(names), resamples, seed)
    drawn_base = taken @ np.bincount(block_index, base, len(names))
    drawn_ours = taken @ np.bincount(block_index, ours, len(names))
    ratios = _ratio(drawn_base, drawn_ours)
    return _gain(float(base.mean()), float(ours.mean()), ratios, len(names), level)


def gain_at(
    base: Floats,
    ours: Floats,
    block: Ints,
    quantile: float,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Gain:
    """Return the gain as `gain` does, of a quantile in (0, 1) instead of the mean."""
    if not len(base):
        raise ValueError("a gain needs at least one job")
    names, block_index = np.unique(block, return_inverse=True)
    taken = draws(len(names), resamples, seed)
    drawn = [_quantiles(values, block_index, taken, quantile) for values in (base, ours)]
    whole = [
        _quantiles(v, block_index, np.ones((1, len(names))), quantile)[0] for v in (base, ours)
    ]
    return _gain(whole[0], whole[1], _ratio(*drawn), len(names), level)


def _quantiles(values: Floats, place: Ints, taken: Floats, quantile: float) -> Floats:
    """Return the least value up to which a share `quantile` of each resample's jobs lies."""
    order = np.argsort(values, kind="stable")
    sorted_place = place[order]
    values_at = np.empty(len(taken))
    for row, counts in enumerate(taken):
        cumulated = np.cumsum(counts[sorted_place])
        at = np.searchsorted(cumulated, quantile * cumulated[-1])
        values_at[row] = values[order[min(int(at), len(order) - 1)]]
    return values_at


def _ratio(base: Floats, ours: Floats) -> Floats:
    safe = np.where(base > 0, base, 1.0)
    return np.where(base > 0, ours / safe, np.where(ours > 0, np.inf, 1.0))


def _gain(base: float, ours: float, ratios: Floats, blocks: int, level: float) -> Gain:
    tail = 50 * (1 - level)
    low, high = np.percentile(ratios, (tail, 100 - tail), method="nearest") - 1.0
    ratio = float(_ratio(np.array([base]), np.array([ours]))[0])
    return Gain(base, ours, ratio - 1.0, float(low), float(high), blocks)
