"""Preemption by rank makes progress in the live deciders, on any workload."""

from __future__ import annotations

from random import Random

import pytest

from shared.contracts.pools import LOG_SCORE_MARGIN, PoolConfigured
from simulator.engine.run import simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.kernel.run import Rules
from simulator.workload.rows import WorkloadJob
from tests.simulator.kernel.workloads import long_and_short
from tests.simulator.progress import LOSS_SHARE, assert_progress

pytestmark = pytest.mark.slow

CASES, CASES_OF_A_COMMIT = 60, 15
NODES = 2


def drawn_rules(case: int) -> Rules:
    draw = Random(1000 + case)
    return Rules(
        checkpoint_s=float(draw.choice([60, 600, 1800, 3600])),
        checkpoint_cost_s=float(draw.choice([0, 0, 30])),
        restart_s=float(draw.choice([0, 60, 600, 1800])),
        fixed_share=draw.choice([0.0, 0.5]),
        loss_share=LOSS_SHARE,
        loss_window_s=draw.choice([3600.0, 86400.0]),
        checkpoint_spread=draw.choice([0.0, 1.0]),
        restart_growth=draw.choice([0.0, 1 / 3]),
    )


def pool_with(rules: Rules) -> PoolConfigured:
    return simulated_pool(
        time_scale=60.0,
        base_policy="gittins",
        preemption="ranked",
        preempt_margin=LOG_SCORE_MARGIN,
        preemption_protection="progress",
        loss_share=rules.loss_share,
        loss_window_s=rules.loss_window_s,
    )


def scenario_of(jobs: list[WorkloadJob], rules: Rules) -> Scenario:
    return Scenario(
        jobs=jobs,
        nodes=equal_nodes(NODES, pool=POOL),
        pool=pool_with(rules),
        window_s=window_of(jobs),
        restart_s=rules.restart_s,
        checkpoint_s=rules.checkpoint_s,
        checkpoint_cost_s=rules.checkpoint_cost_s,
        checkpoint_spread=rules.checkpoint_spread,
        restart_growth=rules.restart_growth,
        fixed_share=rules.fixed_share,
    )


@pytest.mark.parametrize(
    "case",
    [
        *range(CASES_OF_A_COMMIT),
        *(pytest.param(n, marks=pytest.mark.parts) for n in range(CASES_OF_A_COMMIT, CASES)),
    ],
)
def test_every_job_ends_with_few_starts_and_the_pool_loses_little(case: int) -> None:
    rules = drawn_rules(case)
    outcome = simulate(scenario_of(long_and_short(60, case, NODES), rules)).outcome
    assert_progress(outcome, rules, NODES * 8)


def test_rank_stops_jobs_in_these_cases() -> None:
    """Without stops the bounds above would say nothing."""
    jobs = long_and_short(60, 1, NODES)
    outcome = simulate(scenario_of(jobs, drawn_rules(1))).outcome
    assert int((outcome.starts - 1).sum()) > 5
