"""Records of a simulation as an installation appends them: its ids, keys, headers and batches.

A batch of Kafka is compressed as a whole, so that its size depends on what is appended together:
one record of a ledger, one command or report, and what the publisher reads in one of its windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from services.publisher.app import public_record
from services.publisher.core.lane import PublisherLane
from services.publisher.shipper import OutgoingRecord
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.topics import LEDGERS
from shared.ledger.cloudevents import decode as decode_cloudevent
from shared.ledger.partition import TP
from shared.ledger.reader import Reader
from shared.ledger.record import Position, Record, decode, encode
from shared.process.settings import Settings
from simulator.engine.lane import LANE

EVENTS = "events"
MESSAGES = ("commands", "reports")
WINDOW_MS: int = Settings.model_fields["window_ms"].default
ID_CHARS = 20
"""Of the id of a record, in hex."""

Batch = list[OutgoingRecord]


def installed_batches(broker: MemoryBroker) -> dict[str, list[Batch]]:
    """Return the batches of each topic that has records, in the order of its log."""
    records = {ledger: list(_records(broker, ledger)) for ledger in LEDGERS}
    batches = {
        ledger: [[OutgoingRecord(b"", encode(record))] for record in own]
        for ledger, own in records.items()
    }
    for topic in MESSAGES:
        batches[topic] = [[_message(e.value or b"")] for e in broker.entries(TP(topic, LANE))]
    batches[EVENTS] = list(_shipments(records))
    return {topic: own for topic, own in batches.items() if own}


def _records(broker: MemoryBroker, ledger: str) -> Iterator[Record]:
    for entry in broker.entries(TP(ledger, LANE)):
        record = decode(entry.value)
        if record is not None:
            yield msgspec.structs.replace(
                record,
                id=_random(record.id),
                prev=_random(record.prev),
                inputs={name: _position(place) for name, place in record.inputs.items()},
            )


def _position(place: Position) -> Position:
    return place if isinstance(place, int) else (place[0], place[1], _random(place[2]))


def _random(id: str) -> str:
    """Return an id as long, and as hard to compress, as those of an installation."""
    return sha256(id.encode()).hexdigest()[:ID_CHARS] if id else ""


def _message(value: bytes) -> OutgoingRecord:
    message = decode_cloudevent(value)
    trace = (("traceparent", message.traceparent.encode()),) if message.traceparent else ()
    return OutgoingRecord(message.subject.encode(), value, trace)


def _shipments(records: dict[str, list[Record]]) -> Iterator[Batch]:
    """Yield what the publisher writes to `events` for the records of each of its windows."""
    lane, shipment, ends_ms = PublisherLane({}), Batch(), 0
    readers = {ledger: Reader(ledger, LANE) for ledger in records}
    order = [(r.at, ledger, n, r) for ledger, own in records.items() for n, r in enumerate(own)]
    for at, ledger, offset, record in sorted(order, key=lambda entry: entry[:3]):
        if at > ends_ms:
            if shipment:
                yield shipment
            shipment, ends_ms = Batch(), at + WINDOW_MS
        accepted = readers[ledger].offer_record(offset, record)
        if accepted is not None:
            shipment.extend(map(public_record, lane.publish(accepted)))
    if shipment:
        yield shipment
