"""Sizing of a pool to a load."""

from __future__ import annotations

import numpy as np
import pytest

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
    result = nodes_for_load(jobs, wanted)
    assert result.load == pytest.approx(wanted, abs=0.02)
    low, high = result.window_s
    span = jobs[-1].submit_s - jobs[0].submit_s
    assert high - low == pytest.approx(0.4 * span, rel=1e-6)
    work = sum(job.gpus * job.duration_s for job in jobs if job.submit_s >= low)
    assert result.load == pytest.approx(work / (result.nodes * 8 * (high - low)))


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
    one, half = (load_of(job_list, 60, 8, window_of(job_list)) for job_list in (jobs, far))
    assert half == pytest.approx(one / 2, rel=1e-3)
