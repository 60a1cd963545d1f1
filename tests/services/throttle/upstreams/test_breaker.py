"""A breaker opens after failures, tries one request, and cools down longer each time."""

from __future__ import annotations

from services.throttle.upstreams.breaker import Breaker, BreakerRules

RULES = BreakerRules(failures=3, first_s=1.0, longest_s=8.0, settled_s=100.0)


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker(RULES)
    breaker.fail(now, is_trial=breaker.start(now), at_once=True)
    return breaker


def test_it_opens_after_failures_in_a_row() -> None:
    breaker = Breaker(RULES)
    for succeeds in (False, False, True, False, False):
        is_trial = breaker.start(0)
        if succeeds:
            breaker.succeed(0, is_trial=is_trial)
        else:
            breaker.fail(0, is_trial=is_trial)
    assert breaker.phase(0) == "closed"
    breaker.fail(0, is_trial=breaker.start(0))
    assert breaker.phase(0) == "open"
    assert not breaker.allows(0.5)
    assert breaker.wait_s(0.25) == 0.75


def test_an_upstream_that_is_down_opens_it_at_once() -> None:
    assert opened().phase(0) == "open"


def test_half_open_it_lets_one_trial_through() -> None:
    breaker = opened()
    assert breaker.phase(1) == "half_open"
    assert breaker.allows(1)
    assert breaker.start(1)
    assert not breaker.allows(1)
    breaker.succeed(1, is_trial=True)
    assert breaker.phase(1) == "closed"
    assert not breaker.start(1)


def test_a_trial_without_a_verdict_leaves_room_for_another() -> None:
    breaker = opened()
    breaker.abandon(is_trial=breaker.start(1))
    assert breaker.allows(1)
    assert breaker.phase(1) == "half_open"


def test_cool_downs_grow_up_to_a_bound() -> None:
    breaker, now, waits = opened(), 0.0, []
    for _ in range(40):
        waits.append(breaker.wait_s(now))
        now += breaker.wait_s(now)
        breaker.fail(now, is_trial=breaker.start(now))
    assert waits[:5] == [1, 2, 4, 8, 8]
    assert max(waits) == 8


def test_one_that_flaps_keeps_its_cool_down_and_one_that_settled_does_not() -> None:
    for later, wait_s in ((50.0, 2.0), (200.0, 1.0)):
        breaker = opened()
        breaker.succeed(1, is_trial=breaker.start(1))
        breaker.fail(1 + later, is_trial=False, at_once=True)
        assert breaker.wait_s(1 + later) == wait_s


def test_requests_from_before_change_nothing_of_an_open_one() -> None:
    breaker = opened()
    for _ in range(64):
        breaker.fail(0.5, is_trial=False)
    breaker.succeed(0.5, is_trial=False)
    assert breaker.wait_s(0.5) == 0.5
    breaker.start(1)
    breaker.fail(1, is_trial=False)
    breaker.abandon(is_trial=False)
    assert not breaker.allows(1)
    assert breaker.phase(1) == "half_open"


def test_a_rest_is_no_failure_and_bounded() -> None:
    breaker = Breaker(RULES)
    breaker.rest(0, 3600)
    breaker.rest(0, 2)
    assert (breaker.allows(7.9), breaker.phase(7.9), breaker.wait_s(7)) == (False, "closed", 1)
    assert breaker.allows(8)
