"""Means over seeds with their bootstrap intervals, and gains paired by seed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

RESAMPLES = 10_000


def interval(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean, its bootstrap interval over the seeds, and the values, to 0.001."""
    low, high = np.percentile(resampled(values), (2.5, 97.5))
    return {
        "mean": round(fmean(values), 3),
        "low": round(float(low), 3),
        "high": round(float(high), 3),
        "values": [round(value, 3) for value in values],
    }


def range_of(seeds: Sequence[int]) -> str:
    """Return the first and the last of consecutive seeds in words."""
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def gain_of(base: dict[str, Any], ours: dict[str, Any]) -> dict[str, float]:
    """Return how much lower our mean is than that of the base, paired by seed."""
    drawn = 1 - resampled(ours["values"]) / resampled(base["values"])
    low, high = np.percentile(drawn, (2.5, 97.5))
    mean = 1 - ours["mean"] / base["mean"]
    return {"mean": round(mean, 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def resampled(values: Sequence[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return means of draws of the seeds, the same draws for equally many values."""
    draws = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    return np.asarray(np.array(values, np.float64)[draws].mean(1))
