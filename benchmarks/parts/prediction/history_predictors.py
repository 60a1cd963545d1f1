"""Predictors from faded counts of run times: of all jobs, of similar jobs, and calibrated."""

from __future__ import annotations

import numpy as np

from benchmarks.parts.prediction.jobs import Floats, RecordedJobs
from services.priority.core.history.distributions import (
    FADE,
    PRIOR,
    SMOOTHED,
    TRUST,
    VALUES,
    bin_of,
)
from services.priority.core.history.intervals import IntervalCalibration, RunTimeInterval

LEVELS = np.array([0.1, 0.5, 0.9])


def predict_blind(jobs: RecordedJobs) -> Floats:
    """Return quantiles of all jobs that ended before, whoever submitted them."""
    counts = np.zeros_like(PRIOR)
    keep = 1.0 - 1.0 / FADE[0]
    predicted = np.zeros((len(jobs), len(LEVELS)))
    for ended, job in jobs.steps():
        for one in ended:
            counts *= keep
            counts += SMOOTHED[bin_of(jobs.ran_s[one])]
        predicted[job] = bin_quantiles(counts + TRUST[0] * PRIOR)
    return predicted


def bin_quantiles(p: Floats) -> Floats:
    """Return the values of the bins at the three quantiles, as `history.quantile_s` does."""
    ended = np.add.accumulate(p)
    values: Floats = VALUES[np.searchsorted(ended, LEVELS * ended[-1])]
    return values


def predict_by_history(jobs: RecordedJobs) -> Floats:
    """Return the quantiles that ranking uses: of similar jobs, uncalibrated."""
    ended = np.add.accumulate(jobs.distributions, axis=1)
    at = [np.argmax(ended >= q * ended[:, -1:], axis=1) for q in LEVELS]
    return np.stack([VALUES[bins] for bins in at], axis=1)


def predict_calibrated(jobs: RecordedJobs) -> Floats:
    """Return the intervals that the service gives, by its own calibration."""
    calibration = IntervalCalibration()
    tenants = [str(code) if code >= 0 else "" for code in jobs.tenant.tolist()]
    intervals: list[RunTimeInterval] = []
    for ended, job in jobs.steps():
        for one in ended:
            calibration.learn(tenants[one], intervals[one], float(jobs.ran_s[one]))
        intervals.append(calibration.interval(tenants[job], jobs.distributions[job]))
    return np.array(intervals)
