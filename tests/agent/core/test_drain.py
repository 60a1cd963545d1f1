"""The time for the last reports of an incarnation is counted over sessions."""

from __future__ import annotations

from berth_agent.core.drain import DRAIN_MS, LEAST_SESSION_MS, Drain


def test_it_is_over_after_its_time_in_one_session() -> None:
    drain = Drain()
    for now_ms in (0, 1000, DRAIN_MS):
        drain.go_on(now_ms)
        assert not drain.is_over(now_ms)
    assert drain.is_over(DRAIN_MS + 1)


def test_time_without_a_session_does_not_count() -> None:
    drain = Drain()
    drain.go_on(0)
    drain.pause(20_000)
    drain.pause(21_000)
    drain.go_on(900_000)
    assert not drain.is_over(910_000)
    assert drain.is_over(910_001)


def test_sessions_that_end_at_once_suffice_after_a_while() -> None:
    drain = Drain()
    for number in range(DRAIN_MS // LEAST_SESSION_MS):
        drain.go_on(number * 15_000)
        drain.pause(number * 15_000 + 5)
        assert not drain.is_over(number * 15_000 + 5)
    drain.go_on(900_000)
    assert drain.is_over(900_001)
