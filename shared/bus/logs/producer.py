"""Writes to plain topics; only `lane` writes to ledgers."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from shared.bus.logs.kafka import HANG_UP_S, MAX_REQUEST_BYTES
from shared.bus.logs.log import Headers
from shared.bus.logs.stop_client import stop_client
from shared.contracts.topics import LEDGERS
from shared.ledger.errors import OutcomeUnknown
from shared.process.connection import Connection

BATCH_BYTES = 256 * 1024
DELIVERY_MS = 10_000


class Producer:
    """A client whose records all replicas acknowledge, in order; a context that starts it."""

    def __init__(
        self,
        connection: Connection,
        *,
        client: str,
        linger_ms: int,
        batch_bytes: int = BATCH_BYTES,
        timeout_ms: int = DELIVERY_MS,
    ) -> None:
        self._producer = AIOKafkaProducer(
            **connection.producing(),
            client_id=client,
            linger_ms=linger_ms,
            max_batch_size=batch_bytes,
            max_request_size=MAX_REQUEST_BYTES,
            request_timeout_ms=timeout_ms,
        )

    async def start(self) -> None:
        await self._producer.start()

    async def stop(self) -> None:
        """Stop in time, also without the broker: senders await each acknowledgement."""
        await stop_client(self._producer, HANG_UP_S)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


class TopicProducer(Producer):
    """Batches the records sent within `linger_ms`."""

    def __init__(
        self,
        connection: Connection,
        *,
        linger_ms: int = 5,
        client: str = "berth",
        timeout_ms: int = DELIVERY_MS,
    ) -> None:
        super().__init__(connection, client=client, linger_ms=linger_ms, timeout_ms=timeout_ms)

    async def send(
        self,
        topic: str,
        partition: int,
        value: bytes,
        *,
        key: bytes | None = None,
        headers: Headers = (),
    ) -> int:
        """Return the offset, once all replicas have the record.

        Raises OutcomeUnknown: send it again if its readers recognize a repeated id.
        """
        return await (await self.post(topic, partition, value, key=key, headers=headers))

    async def post(
        self,
        topic: str,
        partition: int,
        value: bytes,
        *,
        key: bytes | None = None,
        headers: Headers = (),
    ) -> asyncio.Task[int]:
        """Queue a record (blocks while the buffer is full); the task returns its offset."""
        if topic in LEDGERS:
            raise ValueError(f"{topic} is a ledger: only its decider writes there")
        try:
            sent = await self._producer.send(
                topic, value, key=key, partition=partition, headers=list(headers)
            )
        except KafkaError as error:
            raise OutcomeUnknown(f"{topic}-{partition}: {error!r}") from error
        return asyncio.ensure_future(_offset(sent, topic, partition))


async def _offset(sent: asyncio.Future[object], topic: str, partition: int) -> int:
    try:
        meta = await sent
    except KafkaError as error:
        raise OutcomeUnknown(f"{topic}-{partition}: {error!r}") from error
    return int(getattr(meta, "offset"))  # noqa: B009
