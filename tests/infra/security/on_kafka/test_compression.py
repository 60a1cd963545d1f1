"""Real Kafka keeps the records of Berth's producers compressed; readers get them as they were."""

from __future__ import annotations

from pathlib import Path

from services.publisher.shipper import KafkaShipper, OutgoingRecord
from shared.ledger.partition import TP
from tests.broker_clients import log_of, producer_of, read_to_end
from tests.infra.security.on_kafka.guarded_broker import MARKS, Guarded

pytestmark = MARKS

RECORD = b'{"id":"%d","ev":[' + b",".join([b'{"type":"llm.charged.v1","tokens":3}'] * 40) + b"]}"
RECORDS = [RECORD % number for number in range(20)]
RAW_BYTES = sum(map(len, RECORDS))


def kept_bytes(guarded: Guarded, tp: TP) -> int:
    """Return the bytes of the segments of a partition."""
    folder: Path = guarded.folder / "log" / f"{tp.topic}-{tp.partition}"
    return sum(segment.stat().st_size for segment in folder.glob("*.log"))


async def test_a_ledger_is_kept_compressed_and_read_as_it_was_written(guarded: Guarded) -> None:
    tp = TP("throttle", 0)
    log = log_of(guarded.connection("throttle"))
    await log.start()
    try:
        begin, kept = await log.end(tp), kept_bytes(guarded, tp)
        offsets = [await log.append(tp, record) for record in RECORDS]
        assert offsets == list(range(begin, begin + len(RECORDS)))
        assert [entry.value for entry in await read_to_end(log, tp, begin)] == RECORDS
        from_middle = await read_to_end(log, tp, begin + 7)
    finally:
        await log.stop()
    assert [entry.offset for entry in from_middle] == offsets[7:]
    assert kept_bytes(guarded, tp) - kept < RAW_BYTES / 3


async def test_published_events_are_kept_compressed(guarded: Guarded) -> None:
    tp = TP("events", 0)
    kept = kept_bytes(guarded, tp)
    shipper = KafkaShipper(guarded.connection("publisher"))
    await shipper.start()
    try:
        await shipper.ship({tp: [OutgoingRecord(b"job", record) for record in RECORDS]})
    finally:
        await shipper.stop()
    assert kept_bytes(guarded, tp) - kept < RAW_BYTES / 10
    log = log_of(guarded.connection("gateway"))
    await log.start()
    try:
        entries = await read_to_end(log, tp)
    finally:
        await log.stop()
    assert [entry.value for entry in entries[-len(RECORDS) :]] == RECORDS


async def test_commands_and_reports_are_kept_compressed(guarded: Guarded) -> None:
    tp = TP("reports", 0)
    kept = kept_bytes(guarded, tp)
    async with producer_of(guarded.connection("executor")) as producer:
        for record in RECORDS:
            await producer.send(tp.topic, tp.partition, record)
    assert kept_bytes(guarded, tp) - kept < RAW_BYTES / 3
