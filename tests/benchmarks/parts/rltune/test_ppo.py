"""PPO learns where there is something to learn, and a reward is relative to the base."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.rltune.ppo import Jobs, PpoOptions, reward_of, train

pytestmark = pytest.mark.parts


def test_a_reward_is_zero_for_the_base_and_at_most_one() -> None:
    assert reward_of(100.0, 100.0) == 0.0
    assert reward_of(100.0, 0.0) == 1.0
    assert reward_of(100.0, 400.0) == pytest.approx(-0.75)


def test_training_learns_that_jobs_that_fit_go_before_one_that_blocks() -> None:
    """A job of the whole cluster comes first while one GPU is in use; all others could run."""
    gpus = np.array([1, 16, *[1] * 14], np.int64)
    run_s = np.array([5000.0, 5000.0, *[50.0] * 14])
    jobs: Jobs = (np.zeros(16), run_s, gpus)
    options = PpoOptions(epochs=12, episodes=8, actor_rate=3e-3, critic_rate=3e-3)
    rewards = [reward for _, reward in train(lambda: jobs, 2, options, np.random.default_rng(0))]
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]) + 0.05
