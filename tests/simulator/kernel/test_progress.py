"""Preemption by rank makes progress on any workload: each run ends, with few starts and losses."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from shared.contracts.pools import LOG_SCORE_MARGIN
from simulator.kernel.run import Rules, simulate
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from tests.simulator.kernel.workloads import long_and_short
from tests.simulator.progress import LOSS_SHARE, assert_progress

pytestmark = pytest.mark.slow

CASES = 60


def drawn_rules(case: int) -> Rules:
    """The rules of a case: checkpoints and restarts that real jobs have, and worse ones."""
    draw = Random(case)
    return Rules(
        "gittins",
        preemption=True,
        preempt_margin=LOG_SCORE_MARGIN,
        preemption_protection="progress",
        checkpoint_s=float(draw.choice([60, 300, 600, 1800, 3600, 7200])),
        checkpoint_cost_s=float(draw.choice([0, 0, 0, 30])),
        restart_s=float(draw.choice([0, 10, 60, 300, 600, 1800])),
        fixed_share=draw.choice([0.0, 0.3, 0.9]),
        preempt_price=draw.choice([0.0, 1.0]),
        loss_share=LOSS_SHARE,
        loss_window_s=draw.choice([3600.0, 86400.0]),
        checkpoint_spread=draw.choice([0.0, 1.0]),
        restart_growth=draw.choice([0.0, 1 / 3]),
    )


@pytest.mark.parametrize("case", range(CASES))
def test_every_job_ends_with_few_starts_and_the_pool_loses_little(case: int) -> None:
    rules, nodes = drawn_rules(case), Random(case).randint(2, 6)
    work = build_work(columns_from(long_and_short(300, case, nodes)))
    outcome = simulate(work, np.full(nodes, 8), rules).outcome
    assert_progress(outcome, rules, nodes * 8)


def test_rank_stops_jobs_in_these_cases() -> None:
    """Without stops the bounds above would say nothing."""
    work = build_work(columns_from(long_and_short(300, 1, 3)))
    outcome = simulate(work, np.full(3, 8), drawn_rules(1)).outcome
    assert int((outcome.starts - 1).sum()) > 20


def test_no_job_without_checkpoints_is_stopped_by_rank() -> None:
    work = build_work(columns_from(long_and_short(300, 3, 2)))
    rules = Rules("gittins", preemption=True, checkpoint_s=0.0, preemption_protection="progress")
    assert (simulate(work, np.full(2, 8), rules).outcome.starts == 1).all()
