"""The conformance tests of RLScheduler: the order, what blocks, and the published slowdown."""

from __future__ import annotations

import numpy as np
import pytest

from shared.schedulers.compose import propose
from shared.schedulers.systems import rlscheduler
from shared.schedulers.systems.rlscheduler import LIMITS, RlScheduler, weights
from simulator.batch_queue.jobs import log_file, read_jobs, released_starts, sequences
from simulator.batch_queue.picks import by_network
from simulator.batch_queue.world import mean_bounded_slowdown
from tests.shared.schedulers.views import job, nodes_of, on, rates, view

PUBLISHED = 254.7


def test_a_short_small_job_goes_before_a_long_large_one() -> None:
    jobs = [
        job("large", 4, estimates=rates({"v": 1.0}, 4, left=100_000.0)),
        job("small", 1, 1.0, estimates=rates({"v": 1.0}, 1, left=60.0)),
    ]
    assert RlScheduler().rank(view(jobs, nodes_of(v=4)), {}) == ["small", "large"]


def test_the_chosen_job_that_does_not_fit_blocks_the_rest_and_none_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rlscheduler, "scores", lambda weights, rows: rows[:, 2])
    jobs = [
        job("runs", 255, placement=on("n-v", 255)),
        job("first", 2, 1.0, estimates=rates({"v": 1.0}, 2, left=10.0)),
        job("second", 1, 2.0, estimates=rates({"v": 1.0}, 1, left=100_000.0)),
    ]
    now = view(jobs, nodes_of(v=256), now_s=10.0)
    ranked = RlScheduler().rank(now, {})
    assert ranked == ["runs", "first", "second"]
    assert propose(RlScheduler(), now, {}).placements == {"runs": on("n-v", 255)}


def test_jobs_without_estimates_are_ranked_too() -> None:
    assert sorted(RlScheduler().rank(view([job("a"), job("b")], nodes_of(v=1)), {})) == ["a", "b"]


@pytest.mark.skipif(log_file() is None, reason="lublin_256.swf is not here")
def test_the_slowdown_on_lublin_256_is_the_published_one() -> None:
    file = log_file()
    assert file is not None
    jobs = read_jobs(file)
    parts = sequences(jobs, released_starts(len(jobs), 10))
    pick = by_network(weights(), LIMITS)
    ours = float(np.mean([mean_bounded_slowdown(part, pick) for part in parts]))
    assert ours == pytest.approx(PUBLISHED, rel=0.05)
