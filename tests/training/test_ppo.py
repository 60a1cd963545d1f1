"""PPO: its gradient by small differences, its hours by hand, and that it climbs."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.kernel.codes import INPUTS
from simulator.kernel.weights import untrained
from simulator.metrics.outcome import ScheduleOutcome
from training.ppo import (
    Ppo,
    PpoOptions,
    Samples,
    advantages_of,
    critic_inputs,
    hourly_jobs,
    scores_of,
    surrogate,
)

RANDOM = np.random.default_rng(3)
OPTIONS = PpoOptions(deviation=0.3)


def outcome_of(submit_s: list[float], end_s: list[float]) -> ScheduleOutcome:
    """Return jobs of one GPU that start at once."""
    submits, ends = np.array(submit_s), np.array(end_s)
    n = len(submits)
    return ScheduleOutcome(
        submit_s=submits,
        start_s=submits,
        end_s=ends,
        duration_s=ends - submits,
        gpus=np.ones(n),
        tenant=np.zeros(n, np.int64),
        starts=np.ones(n, np.int64),
        held_s=ends - submits,
        lost_s=np.zeros(n),
        fits=np.ones(n, np.bool_),
        capacity_gpus=8.0,
        window_s=(0.0, float(ends.max())),
        held_by_hour=np.zeros(1),
        horizon_s=float(ends.max()),
    )


def samples(count: int = 40) -> Samples:
    return Samples(
        RANDOM.normal(size=(count, INPUTS)), RANDOM.normal(size=count), RANDOM.normal(size=count)
    )


def some_theta() -> np.ndarray:
    return untrained(4, 2) + RANDOM.normal(0.0, 0.1, len(untrained(4, 2)))


def test_the_gradient_is_that_of_small_differences() -> None:
    own, theta = samples(), some_theta()
    old = scores_of(theta + RANDOM.normal(0.0, 0.003, len(theta)), own.inputs)[0]
    _, gradient, _ = surrogate(theta, old, own, OPTIONS)
    for at in range(len(theta)):
        step = np.zeros_like(theta)
        step[at] = 1e-6
        sides = [surrogate(theta + sign * step, old, own, OPTIONS)[0] for sign in (1, -1)]
        assert gradient[at] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=1e-5)


def test_a_decision_that_has_moved_far_is_not_followed_further() -> None:
    theta = some_theta()
    own = samples(1)
    far = Samples(own.inputs, np.array([1.0]), np.array([1.0]))
    old = scores_of(theta, far.inputs)[0] - 0.5 * OPTIONS.deviation
    value, gradient, _ = surrogate(theta, old, far, OPTIONS)
    assert value == pytest.approx(1 + OPTIONS.clip)
    assert not gradient.any()


def test_steps_raise_the_scores_of_what_was_better_than_expected() -> None:
    own = samples(400)
    good = Samples(own.inputs, own.draws, own.draws * np.sign(own.inputs[:, 2]))
    ppo = Ppo(untrained(4, 2), OPTIONS, np.random.default_rng(0))
    before = scores_of(ppo.theta, good.inputs)[0]
    ppo.improve(good)
    raised = scores_of(ppo.theta, good.inputs)[0] - before
    assert np.corrcoef(raised, good.inputs[:, 2])[0, 1] > 0.5


def test_hours_count_the_jobs_that_are_in_the_pool() -> None:
    outcome = outcome_of(submit_s=[0.0, 1800.0], end_s=[3600.0, 5400.0])
    assert hourly_jobs(outcome, 0.0, 2).tolist() == [1.5, 0.5]


def test_an_advantage_adds_what_follows_at_a_discount() -> None:
    options = PpoOptions(discount=0.5, decay=0.5)
    advantages = advantages_of(np.array([1.0, 0.0, 4.0]), np.zeros(3), options)
    assert advantages.tolist() == [1.0 + 4.0 / 16, 1.0, 4.0]
    known = advantages_of(np.array([1.0]), np.array([1.0]), options)
    assert known.tolist() == [0.0]


def test_the_critic_sees_the_pool_as_it_was_last_seen() -> None:
    decisions = np.zeros((2, INPUTS + 2))
    decisions[:, INPUTS - 1] = (2.0, 3.0)
    seen = critic_inputs(decisions, np.array([1, 1]), 3)
    assert seen[:, 4].tolist() == [0.0, 3.0, 3.0]
    assert seen[:, 8].tolist() == [0.0, 9.0, 9.0]
    assert seen[:, 0].tolist() == [1.0, 1.0, 1.0]
