"""Public events, and a hub that reads them from the in-memory broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from services.gateway.streams.hub import EventHub
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from tests.patience import PATIENCE_S

LANE = TP("events", 0)


def event(subject: str, tenant: str = "ada", type_: str = "job.held.v1") -> bytes:
    return cloudevents.encode(
        id=subject,
        source="/berth/placement/main",
        type=type_,
        data=b"{}",
        subject=subject,
        tenant=tenant,
    )


@asynccontextmanager
async def running_hub(broker: MemoryBroker, room: int = 5) -> AsyncIterator[EventHub]:
    """Run a hub of one lane; it stands at the end of the lane when this yields."""
    hub = EventHub(lambda: MemoryLog(broker), 1, room)
    task = asyncio.create_task(hub.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while hub.vector is None:
                await asyncio.sleep(0)
        yield hub
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def publish(broker: MemoryBroker, hub: EventHub, *events: bytes) -> None:
    """Append events and wait until the hub has distributed them."""
    for value in events:
        broker.append(LANE, value)
    async with asyncio.timeout(PATIENCE_S):
        while hub.vector != [len(broker.entries(LANE))]:
            await asyncio.sleep(0)
