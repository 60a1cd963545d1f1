"""Episodes: no GPU is used twice, jobs block, and decisions see what RLTune's see."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.rltune.episode import EDGE, Floats, Ints, run_episode
from benchmarks.parts.rltune.network import ACTOR, initial
from benchmarks.parts.rltune.ppo import base_wait_s, mean_wait_s

pytestmark = pytest.mark.parts

NODES = 2
ACTOR_0 = initial(ACTOR, np.random.default_rng(0))


def jobs_of(n: int, seed: int = 1) -> tuple[Floats, Floats, Ints]:
    random = np.random.default_rng(seed)
    submit_s = np.cumsum(random.exponential(60.0, n))
    gpus = random.choice([1, 2, 4, 8, 16], n)
    return submit_s, random.exponential(400.0, n), gpus.astype(np.int64)


def test_all_jobs_start_after_their_submission_and_gpus_are_used_once() -> None:
    jobs = jobs_of(200)
    submit_s, run_s, gpus = jobs
    start_s = run_episode(jobs, NODES, ACTOR_0, np.random.default_rng(2).random(200)).start_s
    assert (start_s >= submit_s).all()
    for at in start_s:
        runs = (start_s <= at) & (at < start_s + run_s)
        assert gpus[runs].sum() <= NODES * 8


def test_the_base_starts_jobs_in_their_order_and_blocks() -> None:
    submit_s, run_s = np.array([0.0, 1.0, 2.0]), np.array([100.0, 10.0, 10.0])
    jobs = (submit_s, run_s, np.array([16, 16, 1], np.int64))
    episode = run_episode(jobs, NODES, ACTOR_0, np.full(3, -1.0))
    assert episode.start_s.tolist() == [0.0, 100.0, 110.0]
    assert base_wait_s(jobs, NODES) == pytest.approx(mean_wait_s(jobs, episode)) == 69.0


def test_a_decision_sees_waits_demand_and_whether_a_job_fits() -> None:
    submit_s, run_s = np.array([0.0, 1.0, 1.0]), np.array([100.0, 10.0, 10.0])
    jobs = (submit_s, run_s, np.array([4, 16, 2], np.int64))
    episode = run_episode(jobs, NODES, ACTOR_0, np.full(3, -1.0))
    assert episode.counts.tolist() == [1, 2, 1]
    large, small = episode.features[1:3]
    assert large[0] == 0.0
    assert large[1] == 1 - EDGE
    assert large[4] == 0.5, "one of two nodes is in part free"
    assert (large[5], large[6]) == (EDGE, EDGE), "16 GPUs do not fit beside 4"
    assert small[1] == 0.25
    assert small[2] == pytest.approx(2 / 12 / 16)
    assert small[5] == pytest.approx(2 / 3), "on either node"
    assert small[6] == 1.5 * (1 - EDGE)


def test_equal_draws_give_equal_episodes() -> None:
    draws = np.random.default_rng(3).random(50)
    one, two = (run_episode(jobs_of(50), NODES, ACTOR_0, draws) for _ in range(2))
    assert one.picks.tolist() == two.picks.tolist()
    assert one.start_s.tolist() == two.start_s.tolist()
