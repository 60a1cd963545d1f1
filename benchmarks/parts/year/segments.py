"""Bytes that Apache Kafka keeps of batches: the sizes of its segments, compressed and not.

Each topic is a topic of a broker of its own per form; its batches lie in several partitions, since
a client has one request per partition in flight. Of a topic with many batches every so many-th is
written: a batch is compressed by itself. Indexes of segments are not counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder

from benchmarks.parts.year.installed import Batch
from infra.broker import kafka, topics
from infra.machine.owned_folders import scratch_folder
from infra.machine.process import free_ports
from services.publisher.shipper import BATCH_BYTES, OutgoingRecord
from shared.contracts.topics import TopicSpec
from shared.process.connection import Connection

MOST_BATCHES = 5_000
"""Of a topic, that are written."""
PARTITIONS = 8
IN_FLIGHT = 64
"""Batches of a partition that are not acknowledged."""
UNCOMPRESSED, COMPRESSED = "uncompressed", "gzip"
FORMS: Mapping[str, str | None] = {UNCOMPRESSED: None, COMPRESSED: "gzip"}
KeptBytes = dict[str, dict[str, float]]
"""Bytes by form and topic."""


async def kept_bytes(batches: Mapping[str, list[Batch]]) -> KeptBytes:
    """Return what a broker keeps of the topics in each form. Raises DidNotStart, KafkaError.

    What it keeps of the batches that are written is taken as often as the values of all are larger.
    """
    every = {name: own[:: -(-len(own) // MOST_BATCHES)] for name, own in batches.items()}
    times = {name: _value_bytes(own) / _value_bytes(every[name]) for name, own in batches.items()}
    kept = await _kept_by_kafka(every)
    return {form: {t: size * times[t] for t, size in own.items()} for form, own in kept.items()}


def _value_bytes(batches: Sequence[Batch]) -> int:
    return sum(len(record.value) for batch in batches for record in batch)


async def _kept_by_kafka(batches: Mapping[str, Sequence[Batch]]) -> dict[str, dict[str, int]]:
    (port,) = free_ports(1)
    with scratch_folder("bench-year") as folder:
        running = await asyncio.to_thread(kafka.start, folder, port, plain=True)
        try:
            connection = kafka.root(folder)
            await asyncio.to_thread(_create_topics, connection, batches)
            for form, compression in FORMS.items():
                await _write(connection, form, compression, batches)
            return {form: {t: _size(folder, f"{t}.{form}") for t in batches} for form in FORMS}
        finally:
            await asyncio.to_thread(running.stop)


def _create_topics(connection: Connection, names: Mapping[str, object]) -> None:
    specs = [TopicSpec(f"{name}.{form}", "soft", -1, False) for name in names for form in FORMS]
    topics.create(connection, PARTITIONS, durable=False, specs=specs)


async def _write(
    connection: Connection,
    form: str,
    compression: str | None,
    batches: Mapping[str, Sequence[Batch]],
) -> None:
    settings = connection.producing() | {"compression_type": compression}
    producer = AIOKafkaProducer(**settings, linger_ms=0, max_batch_size=BATCH_BYTES)
    await producer.start()
    try:
        async with asyncio.TaskGroup() as group:
            for name, own in batches.items():
                for partition, part in enumerate(_cut(own, -(-len(own) // PARTITIONS))):
                    group.create_task(_fill(producer, f"{name}.{form}", partition, part))
    finally:
        await producer.stop()


async def _fill(
    producer: AIOKafkaProducer, topic: str, partition: int, batches: Sequence[Batch]
) -> None:
    for several in _cut(batches, IN_FLIGHT):
        sent = [
            await producer.send_batch(builder, topic, partition=partition)
            for batch in several
            for builder in _packed(producer, batch)
        ]
        await asyncio.gather(*sent)


def _packed(producer: AIOKafkaProducer, batch: Batch) -> Iterator[BatchBuilder]:
    """Yield the batches of Kafka for records that are appended together."""
    builder = producer.create_batch()
    for record in batch:
        if not _added(builder, record):
            yield builder
            builder = producer.create_batch()
            _added(builder, record)
    yield builder


def _added(builder: BatchBuilder, record: OutgoingRecord) -> bool:
    key, headers = record.key or None, list(record.headers)
    added = builder.append(timestamp=None, key=key, value=record.value, headers=headers)
    return added is not None


def _cut(batches: Sequence[Batch], length: int) -> Iterator[Sequence[Batch]]:
    return (batches[begin : begin + length] for begin in range(0, len(batches), length))


def _size(folder: Path, topic: str) -> int:
    logs = (folder / "log").glob(f"{topic}-*/*.log")
    return sum(segment.stat().st_size for segment in logs)
