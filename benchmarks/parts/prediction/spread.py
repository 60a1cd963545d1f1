"""Quantiles around a single predicted run time, by the errors that the predictor made before."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.parts.prediction.jobs import Floats, RecordedJobs

RESOLUTION = 20
"""Bins per power of ten of truth over prediction."""
DECADES = 8
FADE = 1000.0
"""Errors after which an old one counts 1/e."""
LEVELS = np.array([0.1, 0.5, 0.9])


def add_spread(jobs: RecordedJobs, predicted_s: Floats) -> Floats:
    """Return [n, 3]: the prediction times quantiles of truth over prediction among ended jobs.

    A predictor of one number has no interval of its own; with this one it is no straw man.
    """
    logs = np.log10(np.maximum(predicted_s, 1.0))
    errors = np.log10(np.maximum(jobs.ran_s, 1.0)) - logs
    counts = np.full(2 * DECADES * RESOLUTION, 1e-3)
    quantiles = np.zeros((len(jobs), len(LEVELS)))
    keep = 1.0 - 1.0 / FADE
    for ended, job in jobs.steps():
        for one in ended:
            counts *= keep
            at = math.floor((errors[one] + DECADES) * RESOLUTION)
            counts[min(len(counts) - 1, max(0, at))] += 1.0
        total = np.add.accumulate(counts)
        bins = np.searchsorted(total, LEVELS * total[-1])
        quantiles[job] = logs[job] + (bins + 0.5) / RESOLUTION - DECADES
    return np.asarray(10.0**quantiles)


def repeat_point(predicted_s: Floats) -> Floats:
    """Return [n, 3]: the same run time as every quantile, as the predictor was published."""
    return np.repeat(np.maximum(predicted_s, 1.0)[:, None], len(LEVELS), axis=1)
