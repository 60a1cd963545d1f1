"""A gain is positive where Berth is better, of a time and of use; the worst seed has the least."""

import numpy as np
import pytest

from benchmarks.parts.cells import METRICS, USE, compared
from simulator.metrics.side import PolicyJobs

WHERE: dict[str, object] = {
    "trace": "t",
    "protocol": "p",
    "load": None,
    "mode": "strict",
    "base": "fcfs",
    "knows": "blind",
    "policy": "ours",
}


def side(times: float, use: float) -> PolicyJobs:
    """Four jobs in two blocks, as often as long as those of the base."""
    delays = times * np.array([10.0, 20.0, 30.0, 40.0])
    return PolicyJobs(delays, 2 * delays, 3 * delays, np.array([0, 0, 1, 1]), np.array([use, use]))


def test_less_time_and_more_use_are_gains_and_the_worst_seed_has_the_least_of_each():
    seeds = [side(0.5, 0.8), side(0.25, 0.5), side(2.0, 0.7)]
    cells = compared(side(1.0, 0.4), side(0.5, 0.6), WHERE, seeds=seeds)
    assert [cell.metric for cell in cells] == list(METRICS)
    for cell in cells:
        due, worst = (0.5, 0.25) if cell.metric == USE else (0.5, -1.0)
        assert cell.gain == pytest.approx(due)
        assert cell.ci_low == pytest.approx(due) == pytest.approx(cell.ci_high)
        assert cell.worst_seed == pytest.approx(worst)


def test_where_nobody_trained_there_is_no_worst_seed():
    (cell,) = compared(side(1.0, 0.4), side(0.5, 0.6), WHERE, ["mean_wait_s"])
    assert cell.worst_seed is None
    assert (cell.base_value, cell.berth_value) == (25.0, 12.5)
