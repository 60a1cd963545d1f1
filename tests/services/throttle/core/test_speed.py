from __future__ import annotations

import pytest

from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.speed import FIRST_SHARE, MOST_KNOWN, EngineSpeed


def a_request(limit: int, tenant: str = "a", application: str = "default") -> ServedRequest:
    return ServedRequest("r", tenant, 10, limit, application=application)


def expected(speed: EngineSpeed, limit: int) -> float:
    return speed.expected_tokens(a_request(limit))


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
    assert expected(speed, 100) == FIRST_SHARE * 100
    for _ in range(200):
        speed.add_answer(a_request(1000), 40)
    assert expected(speed, 100) == pytest.approx(40)
    assert expected(speed, 10) == 10
    assert expected(speed, 0) == 1


def test_where_answers_reach_their_limits_the_limit_is_expected() -> None:
    speed = EngineSpeed()
    for limit in [50, 400] * 100:
        speed.add_answer(a_request(limit), limit)
    assert expected(speed, 60) == pytest.approx(60, rel=0.05)
    assert expected(speed, 390) == pytest.approx(390, rel=0.05)
    assert speed.spread < 0.05


def test_a_few_answers_at_their_limits_say_so_of_limits_that_no_answer_had() -> None:
    speed = EngineSpeed()
    for limit in (50, 60, 70):
        speed.add_answer(a_request(limit), limit)
    assert expected(speed, 2000) == pytest.approx(2000)


def test_an_application_is_expected_to_go_on_and_a_new_one_to_be_usual() -> None:
    speed = EngineSpeed()
    for _ in range(200):
        speed.add_answer(a_request(1000, "a", "short"), 30)
        speed.add_answer(a_request(1000, "a", "long"), 300)
    short, usual, long = (
        speed.expected_tokens(a_request(1000, "a", name)) for name in ("short", "new", "long")
    )
    assert usual == pytest.approx(165, rel=0.05)
    assert short < 0.4 * usual < 1.6 * usual < long <= 300
    assert speed.expected_tokens(a_request(100, "a", "long")) <= 100


def test_what_is_kept_of_expected_lengths_is_bounded_and_of_the_latest_answer() -> None:
    speed = EngineSpeed()
    speed.add_answer(a_request(1000), 40)
    assert expected(speed, 1000) == pytest.approx(40)
    for number in range(2 * MOST_KNOWN):
        expected(speed, 1000 + number)
    assert len(speed.known) <= MOST_KNOWN
    speed.add_answer(a_request(1000), 80)
    assert expected(speed, 1000) > 50


def test_answers_that_differ_from_what_is_expected_have_a_spread() -> None:
    speed = EngineSpeed()
    for tokens in [20, 180] * 100:
        speed.add_answer(a_request(1000), tokens)
    assert speed.spread == pytest.approx(0.64, rel=0.05)
