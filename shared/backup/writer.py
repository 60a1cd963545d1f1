"""Append the records of a backup to Kafka: the only writer of ledgers beside their deciders."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaProducer

from shared.bus.kafka import MAX_REQUEST_BYTES
from shared.bus.log import Entry
from shared.connection import Connection
from shared.ledger.partition import TP

BATCH_BYTES = 256 * 1024
LINGER_MS = 5
DELIVERY_MS = 30_000


class KafkaRestorer:
    """Appends records in order, each with its key, headers and time."""

    def __init__(self, connection: Connection) -> None:
        self._producer = AIOKafkaProducer(
            **connection.aiokafka(),
            client_id="berth-restore",
            acks="all",
            enable_idempotence=connection.idempotent,
            linger_ms=LINGER_MS,
            max_batch_size=BATCH_BYTES,
            max_request_size=MAX_REQUEST_BYTES,
            request_timeout_ms=DELIVERY_MS,
        )

    async def __aenter__(self) -> Self:
        await self._producer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._producer.stop()

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
