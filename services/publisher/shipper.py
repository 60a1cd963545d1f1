"""Writes batches, one in flight per partition: no record overtakes one that was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from aiokafka.errors import KafkaError

from shared.bus.logs.log import Headers
from shared.bus.logs.producer import Producer
from shared.ledger.errors import OutcomeUnknown, TooLarge
from shared.ledger.partition import TP
from shared.process.connection import Connection

BATCH_BYTES = 512 * 1024


class OutgoingRecord(NamedTuple):
    """Key, value and headers of a record to write."""

    key: bytes
    value: bytes
    headers: Headers = ()


Shipment = Mapping[TP, Sequence[OutgoingRecord]]


class Shipper(Protocol):
    """The port through which public records are written."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def ship(self, shipment: Shipment) -> None:
        """Return once all records are acknowledged; raises OutcomeUnknown otherwise."""
        ...

    async def topics(self) -> dict[str, int]:
        """Return all topics with their number of partitions."""
        ...


class KafkaShipper(Producer):
    """Ships to Kafka in record batches, at a quarter of the cost of single records."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, client="berth-publisher", linger_ms=0, batch_bytes=BATCH_BYTES)

    async def ship(self, shipment: Shipment) -> None:
        await asyncio.gather(*(self._fill(tp, records) for tp, records in shipment.items()))

    async def topics(self) -> dict[str, int]:
        client = self._producer.client
        metadata = await client.fetch_all_metadata()
        return {
            topic: len(metadata.partitions_for_topic(topic) or ()) for topic in metadata.topics()
        }

    async def _fill(self, tp: TP, records: Sequence[OutgoingRecord]) -> None:
        batch = self._producer.create_batch()
        for record in records:
            if _add(batch, record):
                continue
            await self._send(tp, batch)
            batch = self._producer.create_batch()
            if not _add(batch, record):
                raise TooLarge(f"{tp.key}: {len(record.value)} bytes exceed the batch limit")
        if batch.record_count():
            await self._send(tp, batch)

    async def _send(self, tp: TP, batch: object) -> None:
        try:
            sent = await self._producer.send_batch(batch, tp.topic, partition=tp.partition)
            await sent
        except KafkaError as error:
            raise OutcomeUnknown(f"{tp.key}: {error!r}") from error


def _add(batch: object, record: OutgoingRecord) -> bool:
    append = batch.append  # type: ignore[attr-defined]
    added = append(timestamp=None, key=record.key, value=record.value, headers=list(record.headers))
    return added is not None
