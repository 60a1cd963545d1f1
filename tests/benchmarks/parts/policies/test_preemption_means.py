"""The mean gain over the costs of stops is that of the cells, with an interval."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.policies.preemption_means import mean_gain
from simulator.metrics.outcome import Floats
from simulator.metrics.policy_jobs import PolicyJobs

GROUP = ("t", 0.5, "gittins")


def side(delay_s: Floats) -> PolicyJobs:
    unit = np.arange(len(delay_s)) // 4
    return PolicyJobs(delay_s, delay_s, delay_s, unit, delay_s, delay_s)


def test_the_mean_is_that_of_the_ratios_and_lies_in_its_interval() -> None:
    rng = np.random.default_rng(2)
    base = rng.exponential(100.0, 800)
    runs = [base * factor * rng.uniform(0.5, 1.5, 800) for factor in (0.3, 0.5, 0.9)]
    mean = mean_gain(GROUP, side(base), [side(run) for run in runs])
    expected = np.mean([run.mean() / base.mean() for run in runs]) - 1.0
    assert mean.wait_vs_best_nonpreemptive == pytest.approx(expected)
    assert mean.ci_low is not None and mean.ci_high is not None
    assert -0.55 < mean.ci_low < expected < mean.ci_high < -0.3
    assert mean.group == GROUP


def test_too_few_hours_have_no_interval() -> None:
    mean = mean_gain(GROUP, side(np.ones(3)), [side(np.full(3, 2.0))])
    assert (mean.wait_vs_best_nonpreemptive, mean.ci_low, mean.ci_high) == (1.0, None, None)
