"""A gain is positive where Berth is better, of a time and of use; the worst seed has the least."""

import numpy as np
import pytest

from benchmarks.parts.policies.cells import METRICS, USES, compare
from simulator.metrics.policy_jobs import PolicyJobs

FIELDS: dict[str, object] = {
    "trace": "t",
    "protocol": "p",
    "load": None,
    "mode": "strict",
    "base": "fcfs",
    "runtime_source": "blind",
    "policy": "ours",
}


def side(times: float, use: float) -> PolicyJobs:
    """Return four jobs in two blocks, `times` as long as those of the base."""
    delays = times * np.array([10.0, 20.0, 30.0, 40.0])
    unit, uses = np.array([0, 0, 1, 1]), np.array([use, use])
    return PolicyJobs(delays, 2 * delays, 3 * delays, unit, uses, uses / 2)


def test_less_time_and_more_use_are_gains_and_the_worst_seed_has_the_least_of_each() -> None:
    seeds = [side(0.5, 0.8), side(0.25, 0.5), side(2.0, 0.7)]
    cells = compare(side(1.0, 0.4), side(0.5, 0.6), FIELDS, seeds=seeds)
    assert [cell.metric for cell in cells] == list(METRICS)
    for cell in cells:
        expected, worst = (0.5, 0.25) if cell.metric in USES else (0.5, -1.0)
        assert cell.gain == pytest.approx(expected)
        assert cell.ci_low == pytest.approx(expected) == pytest.approx(cell.ci_high)
        assert cell.worst_seed == pytest.approx(worst)


def test_without_training_seeds_there_is_no_worst_seed() -> None:
    (cell,) = compare(side(1.0, 0.4), side(0.5, 0.6), FIELDS, ["mean_wait_s"])
    assert cell.worst_seed is None
    assert (cell.base_value, cell.berth_value) == (25.0, 12.5)
