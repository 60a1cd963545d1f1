"""Under faults, departures and changes of settings neither a slot nor a connection leaks."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from services.throttle.upstreams.calls import UpstreamBroken, UpstreamsFailed
from services.throttle.upstreams.pool import UpstreamPool
from simulator.emulator.faults import FaultRates
from tests.services.throttle.upstreams.engines import (
    FAST,
    chat,
    emulated,
    endpoint,
    pool_of,
    read,
    tokens,
)

REQUESTS = 300
FAULTS = FaultRates({"error": 0.1, "reset": 0.1, "hang": 0.03, "cut": 0.05})


async def request(pool: UpstreamPool, source: random.Random) -> str:
    """Send a request and read it, or leave it at any time; returns how it ended."""
    task = asyncio.create_task(read(pool, chat(first_byte_s=1.0, idle_s=5.0, max_tokens=32)))
    if source.random() < 0.3:
        await asyncio.sleep(source.random() * 0.05)
        task.cancel()
    try:
        _, status, body = await task
    except asyncio.CancelledError:
        return "left"
    except UpstreamsFailed as error:
        return error.code
    except UpstreamBroken:
        return "broken"
    assert (status, tokens(body)) == (200, 32)
    return "served" if body.endswith(b"data: [DONE]\n\n") else "cut"


async def change(pool: UpstreamPool, urls: list[str], source: random.Random) -> None:
    """Add, remove and resize upstreams for ever."""
    while True:
        await asyncio.sleep(0.02)
        count = source.randint(2, len(urls))
        pool.configure(endpoint(*urls[:count], max_requests=source.randint(1, 20)))


@pytest.mark.slow
async def test_nothing_leaks() -> None:
    source = random.Random(7)
    async with (
        emulated(FAST, faults=FAULTS, seed=1) as first,
        emulated(FAST, faults=FAULTS, seed=2) as second,
        emulated(FAST, seed=3) as third,
        pool_of() as pool,
    ):
        urls = [first.url, second.url, third.url]
        pool.configure(endpoint(*urls))
        changes = asyncio.create_task(change(pool, urls, source))
        ends: Counter[str] = Counter()
        for _ in range(REQUESTS // 30):
            ends.update(await asyncio.gather(*(request(pool, source) for _ in range(30))))
        changes.cancel()
        await asyncio.wait([changes])
        assert ends.total() == REQUESTS
        assert ends["served"] > 0 < ends["left"]
        pool.configure(endpoint(*urls, max_requests=5))
        assert [state.in_flight for state in pool.states()] == [0, 0, 0]
        assert not pool._members._leaving
        assert not pool._members._waiting
        sessions = pool._open_sessions
        assert sessions is not None
        for session in (sessions.kept, sessions.fresh):
            assert session.connector is not None
            assert not session.connector._acquired
        for engine in (first, second, third):
            await engine.until("num_requests_running", 0)
