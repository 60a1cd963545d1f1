"""The time for the last reports of an incarnation is counted over sessions."""

from __future__ import annotations

from berth_agent.core.last_reports import LAST_REPORTS_MS, LEAST_SESSION_MS, LastReportsTimer


def test_it_is_over_after_its_time_in_one_session() -> None:
    timer = LastReportsTimer()
    for now_ms in (0, 1000, LAST_REPORTS_MS):
        timer.go_on(now_ms)
        assert not timer.is_over(now_ms)
    assert timer.is_over(LAST_REPORTS_MS + 1)


def test_time_without_a_session_does_not_count() -> None:
    timer = LastReportsTimer()
    timer.go_on(0)
    timer.pause(20_000)
    timer.pause(21_000)
    timer.go_on(900_000)
    assert not timer.is_over(910_000)
    assert timer.is_over(910_001)


def test_sessions_that_end_at_once_suffice_after_a_while() -> None:
    timer = LastReportsTimer()
    for number in range(LAST_REPORTS_MS // LEAST_SESSION_MS):
        timer.go_on(number * 15_000)
        timer.pause(number * 15_000 + 5)
        assert not timer.is_over(number * 15_000 + 5)
    timer.go_on(900_000)
    assert timer.is_over(900_001)
