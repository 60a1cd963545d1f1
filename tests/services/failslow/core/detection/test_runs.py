from __future__ import annotations

import numpy as np
import pytest

from services.failslow.core.detection.limits import DetectionLimits
from services.failslow.core.detection.runs import RunLengths

LIMITS = DetectionLimits()
NOISE = np.array([0.01])
ZERO = np.zeros(1)


def after(values: list[float]) -> RunLengths:
    runs = RunLengths.empty(1, LIMITS)
    runs.restart(np.array([0]), ZERO, NOISE, np.array([50.0]))
    for value in values:
        runs.observe(np.array([0]), np.array([value]), ZERO, NOISE, LIMITS)
    return runs


def test_probabilities_sum_to_one() -> None:
    assert after([0.0, 0.01, 0.5, 0.5]).probability.sum() == pytest.approx(1)


def test_a_series_at_its_level_has_one_long_run() -> None:
    runs = after([0.0] * 30)
    assert runs.probability[0].argmax() == LIMITS.runs - 1
    assert runs.mean[0, -1] == pytest.approx(0, abs=0.001)


def test_a_new_level_begins_a_run_of_its_length_and_mean() -> None:
    runs = after([0.0] * 30 + [0.1] * 5)
    assert runs.probability[0].argmax() == 4
    assert runs.mean[0, 4] == pytest.approx(0.1, abs=0.001)


def test_an_outlier_moves_no_run() -> None:
    runs = after([0.0] * 30 + [0.7] + [0.0] * 3)
    likeliest = runs.probability[0].argmax()
    assert runs.mean[0, likeliest] == pytest.approx(0, abs=0.01)


def test_rows_can_be_observed_apart() -> None:
    runs = RunLengths.empty(2, LIMITS)
    runs.restart(slice(None), np.zeros(2), np.full(2, 0.01), np.full(2, 50.0))
    untouched = runs.mean[0].copy()
    runs.observe(np.array([1]), np.array([0.2]), ZERO, NOISE, LIMITS)
    assert np.array_equal(runs.mean[0], untouched)
    assert runs.mean[1, 0] == pytest.approx(0.2)
