"""The policies retrain when they are due, and MACE follows what it measures."""

from __future__ import annotations

import pytest

from services.throttle.core.retraining import RetrainingLimits, RetrainingNeed, ServingLoad
from simulator.llm.retraining import BURST_TOKENS, POLICIES, WINDOW_S, Mace

LIMITS = RetrainingLimits()
NEEDS = [RetrainingNeed(user, 0.5, 1.0, 512) for user in ("a", "b")]


def test_serve_only_retrains_nothing() -> None:
    assert POLICIES["serve_only"](LIMITS, 10).next(ServingLoad(), NEEDS, 100) is None


def test_periodic_trains_every_user_once_a_period() -> None:
    policy = POLICIES["periodic"](LIMITS, 10)
    assert policy.next(ServingLoad(), NEEDS, 9) is None
    last = [RetrainingNeed(user, 0.5, 1.0, BURST_TOKENS) for user in ("a", "b")]
    users = [policy.next(ServingLoad(), last, at_s) for at_s in (10, 11, 12)]
    assert [retraining and retraining.user for retraining in users] == ["a", "b", None]
    assert policy.next(ServingLoad(), last, 20) is not None


def test_continuous_takes_as_much_time_as_serving() -> None:
    policy = POLICIES["continuous"](LIMITS, 10)
    load = ServingLoad(running=8, held_tokens=2000, prompt_tokens=400)
    retraining = policy.next(load, NEEDS, 0)
    assert retraining is not None
    costs = Mace().costs
    expected_s = costs.serving_s(8, 2000, 400)
    assert costs.retraining_of(retraining.tokens) == pytest.approx(expected_s, rel=0.05)


def test_mace_halves_its_share_after_a_window_with_missed_deadlines() -> None:
    mace = Mace(LIMITS)
    mace.ended(True, 1.0)
    mace.next(ServingLoad(), NEEDS, WINDOW_S)
    assert (mace.share, mace.requests) == (0.5, 0)
