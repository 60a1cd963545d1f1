"""Pinball loss and coverage, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.parts.prediction.goals import goals_of
from benchmarks.parts.prediction.jobs import read_history
from benchmarks.parts.prediction.measures import PredictionErrors, errors_of, pinball


def test_a_miss_costs_by_its_side() -> None:
    assert pinball(np.array([[0.0, 0.0, 0.0]]), np.array([1.0])) == pytest.approx(1.5 / 3)
    assert pinball(np.array([[1.0, 1.0, 1.0]]), np.array([0.0])) == pytest.approx(1.5 / 3)
    assert pinball(np.array([[0.0, 1.0, 2.0]]), np.array([1.0])) == pytest.approx(0.2 / 3)


def test_coverage_counts_judged_jobs_within_their_interval() -> None:
    jobs = read_history("synthetic:philly")
    jobs = replace(jobs, judged=np.arange(len(jobs)) >= len(jobs) - 4)
    ran_s = np.maximum(jobs.ran_s, 2.0)[:, None]
    quantiles_s = ran_s * np.array([0.9, 1.0, 1.1])
    quantiles_s[-1] = jobs.ran_s[-1] * np.array([2.0, 3.0, 4.0])
    quantiles_s[:-4] = 1e9
    errors = errors_of(jobs, quantiles_s)
    assert (errors.coverage, errors.below_p10, errors.above_p90) == (0.75, 0.25, 0.0)


def errors_with(loss: float, coverage: float = 0.8) -> PredictionErrors:
    return PredictionErrors(coverage, 0.1, 0.1, loss, 1.0, 0.5)


def test_goals_are_judged_against_each_rival() -> None:
    errors = {"ours": errors_with(0.202), "blind": errors_with(0.2), "last_two": errors_with(0.1)}
    with_owners, without = goals_of(errors, True), goals_of(errors, False)
    assert with_owners["pinball loss below blind"] == "not met"
    assert without["pinball loss within 1 % of blind"] == "met"
    assert without["pinball loss below last_two"] == "not met"
    assert without["pinball loss below qssf"] == "not measured"
    errors["ours"] = errors_with(0.05, coverage=0.84)
    assert goals_of(errors, True)["coverage of p10-p90 is 80 % +- 3"] == "not met"
