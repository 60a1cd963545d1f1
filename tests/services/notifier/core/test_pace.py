"""Attempts are further and further apart, with jitter, and end after a day."""

from __future__ import annotations

from services.notifier.core.pace import FIRST_MS, GIVE_UP_MS, LONGEST_MS, delay_ms, is_too_old


def test_the_pause_doubles_up_to_an_hour() -> None:
    assert [delay_ms(n, 0.0) for n in (1, 2, 3)] == [FIRST_MS // 2, FIRST_MS, 2 * FIRST_MS]
    assert delay_ms(1, 0.999) < FIRST_MS
    assert delay_ms(50, 0.0) == LONGEST_MS // 2


def test_a_state_change_is_sent_for_a_day() -> None:
    assert not is_too_old(1, GIVE_UP_MS)
    assert is_too_old(1, GIVE_UP_MS + 1)
