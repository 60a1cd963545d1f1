"""Jobs of a run have costs of stops of their own, in whole ms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.kernel.job_costs import job_costs
from simulator.kernel.run import Rules
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from tests.simulator.kernel.workloads import long_and_short

WORK = build_work(columns_from(long_and_short(50, 1, 2)))


def test_the_trace_decides_where_it_knows_the_interval() -> None:
    known = np.full(len(WORK), np.nan)
    known[:2] = 0.0, 90.5
    costs = job_costs(replace(WORK, checkpoint_s=known), Rules(checkpoint_s=1800.0))
    assert costs.checkpoint_ms[:3].tolist() == [0, 90_500, 1_800_000]
    assert costs.window_ms[:3].tolist() == [60_000, 60_000, 90_000]


def test_a_stop_that_writes_a_checkpoint_needs_no_window() -> None:
    costs = job_costs(WORK, Rules(checkpoint_s=1800.0, checkpoint_cost_s=30.0))
    assert (costs.window_ms == costs.checkpoint_ms).all()


def test_the_costs_of_some_jobs_are_theirs() -> None:
    costs = job_costs(WORK, Rules(checkpoint_spread=1.0, restart_growth=0.5))
    chosen = np.arange(len(WORK)) % 2 == 1
    assert costs.part(chosen).checkpoint_ms.tolist() == costs.checkpoint_ms[1::2].tolist()
    assert len(set(costs.checkpoint_ms.tolist())) > 20
