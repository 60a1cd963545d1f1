"""Append the records of a backup to Kafka: the only writer of ledgers beside their deciders."""

from __future__ import annotations

import asyncio

from shared.bus.logs.log import Entry
from shared.bus.logs.producer import Producer
from shared.ledger.partition import TP
from shared.process.connection import Connection

LINGER_MS = 5
DELIVERY_MS = 30_000


class KafkaRestorer(Producer):
    """Appends records in order, each with its key, headers and time."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(
            connection, client="berth-restore", linger_ms=LINGER_MS, timeout_ms=DELIVERY_MS
        )

    async def post(self, tp: TP, entry: Entry) -> asyncio.Future[int]:
        sent = await self._producer.send(
            tp.topic,
            entry.value,
            key=entry.key,
            partition=tp.partition,
            headers=list(entry.headers),
            timestamp_ms=entry.timestamp or None,
        )
        return asyncio.ensure_future(_offset(sent))


async def _offset(sent: asyncio.Future[object]) -> int:
    return int(getattr(await sent, "offset"))  # noqa: B009
