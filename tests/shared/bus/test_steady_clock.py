"""A step of the wall clock moves no lane's time, which then approaches the wall clock."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from shared.bus.clock import LedgerClock, WallClock
from shared.bus.steady_clock import SteadyClock
from shared.contracts.clocks import ClockStepped
from tests.chaos import virtual_time

BEGIN_MS = virtual_time.BEGIN_S * 1_000
HOUR_S = 3_600
HOUR_MS = 3_600_000


class Seen(NamedTuple):
    """A lane's time since the beginning, the step that it noticed, and its difference then."""

    at: int
    step: int
    ahead_ms: int


def step_wall(error_s: float) -> None:
    virtual_time.AHEAD_S.set(lambda: error_s)


async def observed(*errors_s: float, pause_s: float = 5.0) -> list[Seen]:
    """Return what a lane notices each pause, with such errors of the wall clock."""
    clock, last_at, seen = SteadyClock(), BEGIN_MS, []
    for error_s in errors_s:
        step_wall(error_s)
        at, step = clock.observe(last_at)
        last_at = at
        clock.note_read()
        seen.append(Seen(at - BEGIN_MS, step, clock.ahead_ms))
        await asyncio.sleep(pause_s)
    return seen


@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_is_noticed_once_and_no_time_passes_by_it(sign: int) -> None:
    first, second, third = virtual_time.run(0, lambda: observed(0, sign * HOUR_S, sign * HOUR_S))
    assert [first.step, second.step, third.step] == [0, sign * HOUR_MS, 0]
    assert second.at == pytest.approx(5_000, abs=300)
    assert third.at == pytest.approx(10_000 + sign * 250, abs=300)
    assert third.ahead_ms == pytest.approx(sign * HOUR_MS, abs=1_000)


def test_a_step_there_and_back_leaves_nothing() -> None:
    seen = virtual_time.run(0, lambda: observed(0, HOUR_S, 0, -HOUR_S, 0))
    assert [one.step for one in seen] == [0, HOUR_MS, -HOUR_MS, -HOUR_MS, HOUR_MS]
    assert abs(seen[-1].ahead_ms) < 1_000


@pytest.mark.parametrize("sign", [1, -1])
def test_the_time_of_a_lane_agrees_with_the_wall_clock_in_the_end(sign: int) -> None:
    errors = (0.0, *[float(sign * 60)] * 40)
    seen = virtual_time.run(0, lambda: observed(*errors, pause_s=60.0))
    assert seen[-1].ahead_ms == 0
    gained = [after.at - before.at for before, after in zip(seen, seen[1:], strict=False)]
    assert min(gained) >= 57_000 and max(gained) <= 63_000


def test_drift_is_no_step() -> None:
    """A clock that is adjusted by 0.05 % is off by 1.8 s after an idle hour."""
    seen = virtual_time.run(0, lambda: observed(0, 1.8, 3.6, pause_s=HOUR_S))
    assert [one.step for one in seen] == [0, 0, 0]


async def restarted(step: ClockStepped, error_s: float, down_s: float) -> int:
    """Return the time of the next owner of a lane, since the step."""
    step_wall(error_s)
    await asyncio.sleep(down_s)
    clock = SteadyClock()
    clock.restore(step)
    return clock.now_ms(BEGIN_MS) - BEGIN_MS


@pytest.mark.parametrize(("error_s", "most_ms"), [(HOUR_S, 12_000), (0, 12_000)])
def test_the_next_owner_of_a_lane_goes_on_behind_the_step(error_s: float, most_ms: int) -> None:
    """Also where the clock was set right while no process ran."""
    step = ClockStepped(
        service="placement",
        partition=0,
        by_ms=HOUR_MS,
        before_ms=BEGIN_MS,
        after_ms=BEGIN_MS + HOUR_MS,
        ahead_ms=HOUR_MS,
    )
    assert 0 <= virtual_time.run(0, lambda: restarted(step, error_s, 10.0)) <= most_ms


def test_the_lanes_of_a_process_count_a_step_once_and_each_goes_on_without_it() -> None:
    async def stepped() -> tuple[int, list[tuple[int, int]]]:
        wall = WallClock()
        lanes = [SteadyClock(wall), SteadyClock(wall), LedgerClock(wall)]
        for error_s in (0, HOUR_S):
            step_wall(error_s)
            seen = [clock.observe(BEGIN_MS) for clock in lanes]
            await asyncio.sleep(5)
        return wall.steps, [(at - BEGIN_MS, step) for at, step in seen]

    steps, seen = virtual_time.run(0, stepped)
    assert steps == 1 and [step for _, step in seen] == [HOUR_MS] * 3
    assert [at for at, _ in seen] == [pytest.approx(5_000, abs=300)] * 2 + [5_000 + HOUR_MS]
