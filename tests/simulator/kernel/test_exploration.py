"""Exploration: recorded inputs are those of the scores, and without it nothing changes."""

from __future__ import annotations

import numpy as np

from simulator.kernel.codes import DRAW, INPUTS, JOB_FEATURES, SCORED_MS
from simulator.kernel.run import Exploration, KernelRun, Rules, simulate
from simulator.kernel.weights import untrained
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from tests.simulator.kernel.workloads import mixed

WORK = build_work(columns_from(mixed(60, 6)))
RULES = Rules("learned", preemption=True, preempt_margin=0.7, theta=untrained(4, 1))


def run(explored: Exploration | None = None) -> KernelRun:
    return simulate(WORK, np.full(4, 8, np.int64), RULES, explored=explored)


def test_without_noise_every_job_runs_as_without_exploration() -> None:
    plain, silent = run(), run(Exploration(1e-12, np.ones(20_000)))
    assert len(plain.decisions) == 0
    assert len(silent.decisions) > len(WORK)
    np.testing.assert_array_equal(plain.outcome.end_s, silent.outcome.end_s)


def test_a_decision_records_what_the_network_saw_and_when() -> None:
    draws = np.random.default_rng(0).normal(size=100)
    rows = run(Exploration(0.5, draws)).decisions
    assert len(rows) == 100, "no score after the last draw is recorded"
    np.testing.assert_array_equal(rows[:, DRAW], draws)
    assert (np.diff(rows[:, SCORED_MS]) >= 0).all()
    assert rows[0, SCORED_MS] == WORK.submit_ms[0]
    assert np.isclose(rows[0, 2], np.log(WORK.gang[0]) / 5.0)
    assert np.isclose(rows[0, 3], np.log(WORK.gang[0] / 32) / 5.0)
    assert set(rows[:, JOB_FEATURES - 1]) == {0.0, 1.0}, "waiting and running jobs"
    assert rows[-1, JOB_FEATURES:INPUTS].any(), "the context of the pool"


def test_noise_changes_the_order() -> None:
    draws = np.random.default_rng(0).normal(size=20_000)
    noisy = run(Exploration(3.0, draws)).outcome
    assert (noisy.end_s != run().outcome.end_s).any()
    assert noisy.ended.all()
