from __future__ import annotations

import pytest

from services.throttle.core.speed import FIRST_SHARE, EngineSpeed


def test_the_speed_is_that_of_the_busy_time_and_unknown_before() -> None:
    speed = EngineSpeed()
    assert speed.tokens_per_s() is None
    speed.begin(10_000)
    for second in range(1, 30):
        speed.add_tokens(50, 10_000 + 1000 * second)
    assert speed.tokens_per_s() == pytest.approx(50, rel=0.01)
    speed.begin(900_000)
    speed.add_tokens(50, 901_000)
    assert speed.tokens_per_s() == pytest.approx(50, rel=0.01)


def test_answers_are_expected_to_be_as_long_as_those_before_and_within_their_limit() -> None:
    speed = EngineSpeed()
    assert speed.expected_tokens(100) == FIRST_SHARE * 100
    for _ in range(200):
        speed.add_answer(40, 1000)
    assert speed.expected_tokens(100) == pytest.approx(40)
    assert speed.expected_tokens(10) == 10
    assert speed.expected_tokens(0) == 1


def test_where_answers_reach_their_limits_the_limit_is_expected() -> None:
    speed = EngineSpeed()
    for limit in [50, 400] * 100:
        speed.add_answer(limit, limit)
    assert speed.expected_tokens(60) == pytest.approx(60, rel=0.05)
    assert speed.expected_tokens(390) == pytest.approx(390, rel=0.05)
    assert speed.spread < 0.05


def test_answers_that_differ_from_what_is_expected_have_a_spread() -> None:
    speed = EngineSpeed()
    for tokens in [20, 180] * 100:
        speed.add_answer(tokens, 1000)
    assert speed.spread == pytest.approx(0.64, rel=0.05)
