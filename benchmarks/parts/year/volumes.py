"""Bytes of each topic and of each type of event, from the records of a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from shared.bus.logs.memory import MemoryBroker
from shared.contracts.topics import LEDGERS
from shared.ledger.partition import TP
from shared.ledger.record import decode
from simulator.engine.lane import LANE
from simulator.engine.recording import TOPICS

RECORD_BYTES = 12
"""Bytes of a record beside key and value in a batch of Kafka, nearly."""
RANKINGS: Mapping[str, tuple[str, ...]] = {
    "priority": ("queue.ranked.v1", "queue.reranked.v1"),
    "placement": ("ranks.noted.v1", "ranks.changed.v1"),
}


class TypeVolume(NamedTuple):
    """Events of one type in a ledger."""

    events: int
    bytes: int


def topic_bytes(broker: MemoryBroker) -> dict[str, int]:
    """Return the bytes of each topic that has records, as they lie on disk uncompressed."""
    volumes = {topic: _bytes_of(broker, topic) for topic in TOPICS}
    return {topic: volume for topic, volume in volumes.items() if volume}


def _bytes_of(broker: MemoryBroker, topic: str) -> int:
    entries = broker.entries(TP(topic, LANE))
    return sum(len(e.value or b"") + len(e.key or b"") + RECORD_BYTES for e in entries)


def type_volumes(broker: MemoryBroker, ledger: str) -> dict[str, TypeVolume]:
    """Return events and bytes of each type of a ledger, largest first; envelopes are not in it."""
    events: Counter[str] = Counter()
    volume: Counter[str] = Counter()
    for entry in broker.entries(TP(ledger, LANE)):
        record = decode(entry.value)
        for stored in record.events() if record else ():
            events[stored.type] += 1
            volume[stored.type] += len(stored.data)
    return {name: TypeVolume(events[name], size) for name, size in volume.most_common()}


def ranking_volumes(broker: MemoryBroker) -> dict[str, dict[str, float]]:
    """Return rankings, and bytes per ranking, of each ledger that records them."""
    by_ledger: dict[str, dict[str, float]] = {}
    for ledger, types in RANKINGS.items():
        volumes = type_volumes(broker, ledger)
        parts = [volumes[name] for name in types if name in volumes]
        number = sum(part.events for part in parts)
        total = sum(part.bytes for part in parts)
        by_ledger[ledger] = {
            "rankings": number,
            "bytes": round(total / number, 1) if number else 0.0,
        }
    return by_ledger


def ledgers_in(broker: MemoryBroker) -> list[str]:
    return [ledger for ledger in LEDGERS if broker.entries(TP(ledger, LANE))]
