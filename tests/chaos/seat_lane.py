"""A lane of the small decider on a real broker, its input, and a sender that repeats."""

from __future__ import annotations

import asyncio

from shared.bus.hosting.lanes import Lanes
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.kafka import KafkaLog
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.harness.ledger import SeatDecider, Seats

LEDGER, INPUT = TP("admission", 0), TP("commands", 0)


def lane(connection: Connection) -> Lane[Seats]:
    return Lane(
        SeatDecider(),
        0,
        KafkaLog(connection),
        inputs=[INPUT],
        decoder=InputDecoder("admission"),
        settings=LaneSettings(window_ms=2),
    )


async def feed(lanes: Lanes[Seats], connection: Connection) -> None:
    """Deliver the input as the host does, with a client of its own."""
    log = KafkaLog(connection)
    await log.start()
    source = await log.feed({INPUT: lanes.next_offsets()[INPUT]})
    try:
        while True:
            for entry in (await source.poll(0.2)).get(INPUT, []):
                await lanes.deliver(INPUT, entry.offset, entry.value)
    finally:
        await source.close()
        await log.stop()


async def put(out: KafkaLog, value: bytes) -> None:
    """Append until acknowledged, as a sender with an id does."""
    while True:
        try:
            await out.append(INPUT, value)
            return
        except OutcomeUnknown:
            await asyncio.sleep(0.1)
