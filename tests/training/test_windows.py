"""Windows of a trace to train on."""

from __future__ import annotations

from tests.simulator.kernel.workloads import work
from training.windows import jobs_between, nodes_for

JOBS = work((0, 100, 1, 8), (10, 100, 2, 8), (20, 100, 1, 1), (100, 100, 1, 1))


def test_a_period_is_a_share_of_time_not_of_jobs() -> None:
    assert jobs_between(JOBS, (0.0, 0.2)) == (0, 2)
    assert jobs_between(JOBS, (0.1, 1.0)) == (1, 3)


def test_nodes_have_the_requested_load() -> None:
    assert nodes_for(JOBS, 1.0).tolist() == [8] * 3
    assert nodes_for(JOBS, 0.5).tolist() == [8] * 6


def test_nodes_hold_the_largest_gang_whatever_the_load() -> None:
    assert nodes_for(JOBS, 100.0).tolist() == [8] * 2
