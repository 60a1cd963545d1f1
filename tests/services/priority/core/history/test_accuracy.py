"""Error of the run-time predictor."""

from __future__ import annotations

import math

import pytest

from services.priority.core.history.accuracy import Accuracy


def test_without_samples_there_are_no_terms() -> None:
    assert Accuracy().terms() == {}


def test_errors_are_averaged_with_and_without_sign() -> None:
    accuracy = Accuracy()
    accuracy.add(10.0, 100.0, 1000.0, ran_s=10.0)
    accuracy.add(10.0, 100.0, 1000.0, ran_s=10_000.0)
    terms = accuracy.terms()
    assert terms["estimate.samples"] == 2
    assert terms["estimate.error_log10_p50"] == pytest.approx(1.5, abs=0.001)
    assert terms["estimate.bias_log10_p50"] == pytest.approx(-0.5, abs=0.001)
    assert terms["estimate.within_p10_p90"] == pytest.approx(0.5, abs=0.001)


def test_old_samples_fade() -> None:
    accuracy = Accuracy()
    accuracy.add(1.0, 10.0, 100.0, ran_s=1000.0)
    for _ in range(1000):
        accuracy.add(1.0, 10.0, 100.0, ran_s=10.0)
    assert accuracy.error == pytest.approx(2.0 * math.exp(-1), rel=0.01)


def test_terms_are_those_of_the_last_job() -> None:
    accuracy = Accuracy()
    for samples in (1.0, 2.0, 3.0):
        accuracy.add(1.0, 10.0, 100.0, ran_s=10.0)
        assert accuracy.terms() is accuracy.terms()
        assert accuracy.terms()["estimate.samples"] == samples
