"""Batches are those of an installation, and what real Kafka keeps of them is measured."""

from __future__ import annotations

import pytest

from benchmarks.parts.year.installed import installed_batches
from benchmarks.parts.year.requests import play_endpoint
from benchmarks.parts.year.segments import kept_bytes
from infra.broker import kafka
from services.publisher.core.position import HEADER
from shared.contracts.llm import LlmRequestFinished, TokensCharged
from shared.ledger.partition import TP
from shared.ledger.reader import Reader
from shared.ledger.record import decode


def test_records_and_shipments_are_those_of_an_installation() -> None:
    broker, requests = play_endpoint(0.02, 1.0)
    batches = installed_batches(broker)
    reader = Reader("throttle", 0)
    ledger = [record for batch in batches["throttle"] for record in batch]
    assert all(reader.offer(offset, record.value) for offset, record in enumerate(ledger))
    assert all(len(batch) == 1 for batch in batches["throttle"])
    first = decode(ledger[1].value)
    assert first is not None and len(first.id) == 20
    types = {name for entry in broker.entries(TP("throttle", 0)) for name in types_of(entry.value)}
    assert (TokensCharged.TYPE, LlmRequestFinished.TYPE) in types
    assert HEADER in dict(batches["events"][0][-1].headers)
    assert requests > 0


def types_of(value: bytes | None) -> list[tuple[str, ...]]:
    record = decode(value)
    assert record is not None
    return [tuple(event.type for event in record.events())]


@pytest.mark.parts
@pytest.mark.kafka
@pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there")
async def test_what_kafka_keeps_is_less_by_its_compression() -> None:
    broker, _ = play_endpoint(0.02, 1.0)
    batches = installed_batches(broker)
    kept = await kept_bytes(batches)
    values = {
        topic: sum(len(record.value) for batch in own for record in batch)
        for topic, own in batches.items()
    }
    for topic, size in values.items():
        assert kept["uncompressed"][topic] > size > kept["gzip"][topic] > 0
