"""Pools as busy as asked for, and when their nodes fall."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.engine.failures import Failure, draw_failures, failures_from_faults, merge_failures
from simulator.engine.sizing import (
    OfferedLoad,
    load_of,
    nodes_for_load,
    stretch_arrivals,
    window_of,
)
from simulator.workload.source import load


@pytest.mark.parametrize("wanted", [0.5, 0.7, 0.9])
def test_the_node_count_reaches_the_load_of_the_last_part(wanted: float) -> None:
    jobs = load("synthetic", 3000, seed=1).jobs
    found = nodes_for_load(jobs, wanted)
    assert found.load == pytest.approx(wanted, abs=0.02)
    low, high = found.window_s
    span = jobs[-1].submit_s - jobs[0].submit_s
    assert high - low == pytest.approx(0.4 * span, rel=1e-6)
    work = sum(job.gpus * job.duration_s for job in jobs if job.submit_s >= low)
    assert found.load == pytest.approx(work / (found.nodes * 8 * (high - low)))


def test_a_pool_that_holds_all_gangs_comes_before_one_that_is_a_little_nearer() -> None:
    duration_s, gpus = np.full(41, 100.0), np.ones(41)
    duration_s[-1], gpus[-1] = 51.0, 80.0
    offered = OfferedLoad(np.zeros(41), duration_s, gpus, np.ceil(gpus / 8), 8, (0.0, 100.0))
    assert offered.load(5) == 1.0 and offered.load(10) == pytest.approx(1.01)
    assert offered.nodes_for(1.0) == 10
    assert offered.nodes_for(0.97) == 5


def test_stretched_arrivals_offer_less() -> None:
    jobs = load("synthetic", 500, seed=2).jobs
    far = stretch_arrivals(jobs, 2.0)
    one, half = (load_of(each, 60, 8, window_of(each)) for each in (jobs, far))
    assert half == pytest.approx(one / 2, rel=1e-3)


def test_faults_of_one_node_that_overlap_are_one() -> None:
    faults = [Failure("a", 0, 5), Failure("b", 1, 2), Failure("a", 4, 9), Failure("a", 10, 11)]
    assert merge_failures(faults) == [Failure("a", 0, 9), Failure("b", 1, 2), Failure("a", 10, 11)]


def test_drawn_failures_are_as_many_as_their_rate_says() -> None:
    nodes = [f"n{n}" for n in range(200)]
    found = draw_failures(nodes, 0.0, 1e6, seed=3, mtbf_s=1e5, repair_s=1e3)
    assert len(found) == pytest.approx(200 * 1e6 / 1.01e5, rel=0.1)
    assert found == draw_failures(nodes, 0.0, 1e6, seed=3, mtbf_s=1e5, repair_s=1e3)


def test_recorded_faults_are_laid_over_the_nodes_from_the_beginning() -> None:
    faults = [(f"server{n}", 10.0 * n, 10.0 * n + 5) for n in range(400)]
    nodes = [f"n{n}" for n in range(50)]
    found = failures_from_faults(faults, nodes, begin_s=1000.0)
    assert {failure.node_id for failure in found} == set(nodes)
    assert all(failure.up_s - failure.down_s == 5 and failure.down_s >= 1000 for failure in found)
