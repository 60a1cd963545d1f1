"""The wall clock of the throttle's host steps: no wait ends and no budget is free by it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
import pytest

from services.throttle.core.state import EndpointState
from shared.bus import clock
from shared.contracts.endpoints import TokenBudget, Upstream
from shared.contracts.llm import EndpointClockStepped, LlmRequestRejected, LlmRequestStarted
from tests.patience import PATIENCE_S, until
from tests.services.throttle.proxy.test_serve import engine
from tests.services.throttle.shell import MODEL, ThrottleStack, chat

HOUR_MS = 3_600_000
LIMITS: dict[str, dict[str, Any]] = {
    "requests": {"discipline": "rpm", "tenant_per_minute": 1},
    "tokens": {"discipline": "tpm", "tenant_tokens_per_minute": 300},
}
ROUTE = "/v1/chat/completions"


class WallClock:
    """The wall clock of this process, with an error that a test changes."""

    def __init__(self) -> None:
        self.error_ms = 0
        self._now_ms = clock.now_ms

    def now_ms(self) -> int:
        return self._now_ms() + self.error_ms


@pytest.fixture
def wall() -> Iterator[WallClock]:
    wall = WallClock()
    with patch.object(clock, "now_ms", wall.now_ms):
        yield wall


def stack_at(tmp_path: Path, url: str, **settings: Any) -> ThrottleStack:
    stack = ThrottleStack(tmp_path, url, **settings)
    upstream = Upstream(name="e0", url=url, max_requests=1)
    stack.access(stack.endpoint.model_copy(update={"upstreams": (upstream,)}))
    return stack


def state_of(stack: ThrottleStack) -> EndpointState:
    return stack.lane.state


async def ask(client: aiohttp.ClientSession, tokens: int) -> int:
    async with client.post(ROUTE, json=chat(tokens)) as response:
        await response.read()
        return response.status


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS])
async def test_the_queue_survives_a_step_of_the_clock_and_its_way_back(
    tmp_path: Path, wall: WallClock, by_ms: int
) -> None:
    async with engine(speed=20.0) as (_, url):
        stack = stack_at(tmp_path, url, queue_timeout_s=60.0)
        async with stack.running() as client, asyncio.TaskGroup() as tasks:
            await until(lambda: state_of(stack).capacity == 1)
            asked = [tasks.create_task(ask(client, 100)) for _ in range(4)]
            await until(lambda: len(state_of(stack).waiting) == 3)
            wall.error_ms = by_ms
            await until(lambda: len(state_of(stack).waiting) < 3)
            wall.error_ms = 0
        assert [task.result() for task in asked] == [200] * 4
        events = stack.events()
        assert not [event for event in events if isinstance(event, LlmRequestRejected)]
        waits = [event.waited_ms for event in events if isinstance(event, LlmRequestStarted)]
        assert max(waits) < HOUR_MS / 10
        steps = [event.by_ms for event in events if isinstance(event, EndpointClockStepped)]
        assert len(steps) == (1 if by_ms > 0 else 0), "a ledger that is ahead goes on"


@pytest.mark.parametrize("memory", ["window", "half_life"])
async def test_a_step_of_the_clock_frees_no_budget(
    tmp_path: Path, wall: WallClock, memory: str
) -> None:
    budget = TokenBudget.model_validate(
        {"holder": "tenant", "unit": "tokens", "limit": 300, "memory": memory, "period_s": 60.0}
    )
    async with engine(speed=20.0) as (_, url):
        stack = ThrottleStack(tmp_path, url, budgets=(budget,))
        async with stack.running() as client:
            assert await ask(client, 200) == 200
            wall.error_ms = HOUR_MS
            assert await ask(client, 200) == 429
            wall.error_ms = -HOUR_MS
            assert await ask(client, 200) == 429


@pytest.mark.parametrize("unit", LIMITS)
async def test_a_step_of_the_clock_frees_no_limit_per_minute(
    tmp_path: Path, wall: WallClock, unit: str
) -> None:
    async with engine(speed=20.0) as (_, url):
        stack = ThrottleStack(tmp_path, url, **LIMITS[unit])
        async with stack.running() as client:
            assert await ask(client, 200) == 200
            for error_ms in (HOUR_MS, -HOUR_MS, 2 * HOUR_MS):
                wall.error_ms = error_ms
                assert await ask(client, 200) == 429


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS])
async def test_a_step_of_the_clock_locks_no_budget_beyond_its_window(
    tmp_path: Path, wall: WallClock, by_ms: int
) -> None:
    budget = TokenBudget(holder="tenant", unit="requests", limit=1, memory="window", period_s=1)
    async with engine() as (_, url):
        stack = ThrottleStack(tmp_path, url, budgets=(budget,))
        async with stack.running() as client:
            assert await ask(client, 5) == 200
            wall.error_ms = by_ms
            assert await ask(client, 5) == 429
            async with asyncio.timeout(PATIENCE_S):
                while await ask(client, 5) == 429:
                    await asyncio.sleep(0.05)


async def test_the_clock_of_a_process_that_is_started_later_is_taken_as_it_is(
    tmp_path: Path, wall: WallClock
) -> None:
    """The time in which no process ran is not known: all of it counts as time."""
    async with engine(speed=20.0) as (_, url):
        stack = ThrottleStack(tmp_path, url)
        async with stack.running() as client:
            assert await ask(client, 5) == 200
        wall.error_ms = HOUR_MS
        async with stack.running() as client:
            assert await ask(client, 5) == 200
        assert EndpointClockStepped.TYPE not in stack.types()
        assert state_of(stack).endpoint_name == MODEL
