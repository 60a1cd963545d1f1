from __future__ import annotations

import asyncio

from shared.bus.clock import LedgerClock
from tests.chaos import virtual_time

BEGIN_MS = virtual_time.BEGIN_S * 1_000
AHEAD_MS = 60_000


async def elapsed_ms(last_at: int) -> list[int]:
    """Return a lane's time after 0 and 5 s, relative to the wall clock at the beginning."""
    clock = LedgerClock()
    before = clock.now_ms(last_at)
    await asyncio.sleep(5)
    return [at - BEGIN_MS for at in (before, clock.now_ms(last_at))]


def test_a_lane_decides_at_the_time_of_the_wall_clock() -> None:
    assert virtual_time.run(0, lambda: elapsed_ms(BEGIN_MS)) == [0, 5_000]


def test_behind_a_ledger_that_is_ahead_time_goes_on_from_its_last_record() -> None:
    times = virtual_time.run(0, lambda: elapsed_ms(BEGIN_MS + AHEAD_MS))
    assert times == [AHEAD_MS, AHEAD_MS + 5_000]


def test_a_read_of_the_ledger_is_the_new_beginning() -> None:
    async def after_a_read() -> int:
        clock = LedgerClock()
        await asyncio.sleep(5)
        clock.note_read()
        return clock.now_ms(BEGIN_MS + AHEAD_MS) - BEGIN_MS

    assert virtual_time.run(0, after_a_read) == AHEAD_MS


async def steps_of(*errors_s: float, last_at: int = 0) -> list[int]:
    """Return the steps that a lane notices each 5 s, with such errors of the wall clock."""
    clock, steps = LedgerClock(), []
    for error_s in errors_s:
        virtual_time.AHEAD_S.set(lambda error_s=error_s: error_s)  # type: ignore[misc]
        steps.append(clock.observe(last_at)[1])
        await asyncio.sleep(5)
    return steps


def test_a_step_of_the_wall_clock_is_noticed_once_and_drift_is_not() -> None:
    steps = virtual_time.run(0, lambda: steps_of(0, 0.4, 3600, 3600.9, 3600.9, 0, 0))
    assert steps == [0, 0, 3_599_600, 0, 0, -3_600_900, 0]


def test_where_another_process_has_written_its_clock_counts() -> None:
    async def takes_over() -> list[tuple[int, int]]:
        clock = LedgerClock()
        read = [clock.observe(0)]
        clock.note_read()
        read.append(clock.observe(BEGIN_MS + AHEAD_MS))
        await asyncio.sleep(5)
        read.append(clock.observe(BEGIN_MS + AHEAD_MS))
        return [(at - BEGIN_MS, step) for at, step in read]

    assert virtual_time.run(0, takes_over) == [(0, 0), (AHEAD_MS, 0), (AHEAD_MS + 5_000, 0)]
