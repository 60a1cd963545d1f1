"""Errors of predicted quantiles, over the judged jobs."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.parts.prediction.jobs import Floats, RecordedJobs

QUANTILES = np.array([0.1, 0.5, 0.9])
LEAST_S = 1.0


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """`pinball` is the mean over the three quantiles; log10 s is fair to short and long jobs.

    `coverage` is the share of jobs within p10 and p90; `error_p50` is the mean of
    |log10(p50 / truth)|.
    """

    coverage: float
    below_p10: float
    above_p90: float
    pinball_log10_s: float
    pinball_s: float
    error_p50_log10: float

    def plain(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in asdict(self).items()}


def pinball(predicted: Floats, truth: Floats) -> float:
    """Return the mean pinball loss of quantiles [n, 3] against the truth [n]."""
    rest = truth[:, None] - predicted
    return float(np.maximum(QUANTILES * rest, (QUANTILES - 1.0) * rest).mean())


def errors_of(jobs: RecordedJobs, quantiles_s: Floats) -> PredictionErrors:
    """Return the errors of p10, p50 and p90, [n, 3] in s, over the judged jobs."""
    predicted_s = np.sort(np.maximum(quantiles_s[jobs.judged], LEAST_S), axis=1)
    ran_s = np.maximum(jobs.ran_s[jobs.judged], LEAST_S)
    below, above = ran_s < predicted_s[:, 0], ran_s > predicted_s[:, 2]
    logs, truth = np.log10(predicted_s), np.log10(ran_s)
    return PredictionErrors(
        coverage=float(1.0 - (below | above).mean()),
        below_p10=float(below.mean()),
        above_p90=float(above.mean()),
        pinball_log10_s=pinball(logs, truth),
        pinball_s=pinball(predicted_s, ran_s),
        error_p50_log10=float(np.abs(logs[:, 1] - truth).mean()),
    )
