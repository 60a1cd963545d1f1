"""Every subscriber has a queue of its own: a slow one ends, the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from services.gateway.hub import EventHub, Subscriber
from services.gateway.sse import live_frames
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.ledger import cloudevents
from shared.ledger.partition import TP

LANE = TP("events", 0)


def event(name: str) -> bytes:
    return cloudevents.encode(
        id=name, source="/berth/placement/main", type="job.held.v1", data=b"{}", subject=name
    )


@asynccontextmanager
async def running(hub: EventHub) -> AsyncIterator[None]:
    """Run the hub from its first position on."""
    task = asyncio.create_task(hub.run())
    try:
        async with asyncio.timeout(60):
            while hub.vector is None:
                await asyncio.sleep(0)
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def collect(subscriber: Subscriber, chunks: list[bytes]) -> None:
    async for chunk in live_frames(subscriber, lambda: True):
        chunks.append(chunk)


def events_in(chunks: list[bytes]) -> int:
    return b"".join(chunks).count(b"id: ")


async def test_a_slow_client_receives_the_end_and_others_continue() -> None:
    broker = MemoryBroker()
    hub = EventHub(lambda: MemoryLog(broker), 1, room=5)
    async with running(hub), asyncio.timeout(60):
        slow, quick = hub.subscribe(lambda header: True), hub.subscribe(lambda header: True)
        chunks: list[bytes] = []
        reader = asyncio.create_task(collect(quick, chunks))
        for number in range(1, 21):
            await MemoryLog(broker).append(LANE, event(f"e{number}"))
            while events_in(chunks) < number:
                await asyncio.sleep(0)
        end = [chunk async for chunk in live_frames(slow, lambda: True)]
        reader.cancel()
    assert end[-1] == b'event: end\ndata: {"reason":"slow_client"}\n\n'
    assert events_in(end) == 5
    assert events_in(chunks) == 20
