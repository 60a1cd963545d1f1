"""Networks of all training seeds beside the Gittins rank."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.policies.preemption_page import seed_table
from benchmarks.parts.policies.seed_comparison import SeedComparison, compare, means_by_seed
from simulator.metrics.policy_jobs import PolicyJobs


def side(delays_s: list[float]) -> PolicyJobs:
    values = np.array(delays_s)
    return PolicyJobs(values, values, values, np.arange(len(values)), values, values)


def test_a_network_under_which_all_wait_half_as_long_is_better_beyond_doubt() -> None:
    gittins = [float(n % 7 + 1) for n in range(200)]
    halves = [delay / 2 for delay in gittins]
    cell = compare("t", 0.5, ("berth-preempt-1", True), side(gittins), side(halves))
    assert cell.wait_vs_gittins == pytest.approx(-0.5)
    assert cell.ci_high is not None
    assert cell.ci_high < -0.4


def test_an_interval_that_cannot_be_given_is_left_out() -> None:
    cell = compare("t", 0.0, ("s", False), side([1.0]), side([2.0]))
    assert (cell.wait_vs_gittins, cell.ci_low, cell.ci_high) == (1.0, None, None)
    assert "| t | 0% | +100% |" in seed_table([cell])


def test_the_mean_of_a_seed_is_of_ratios_and_the_shipped_one_is_marked() -> None:
    cells = [
        SeedComparison("a", 0.0, "s-0", True, 1.0, -0.1, 0.3),
        SeedComparison("b", 0.0, "s-0", True, -0.68, -0.7, -0.1),
    ]
    assert means_by_seed(cells) == {"s-0": pytest.approx(-0.2)}
    page = seed_table(cells)
    assert "| trace | never stopped | s-0 (shipped) |" in page
    assert "| b | 0% | -68% (-70% to -10%) |" in page
    assert page.endswith("| geometric mean |  | -20.0% |\n")
