"""What the publisher would have made of a simulation's ledgers, and the ledgers as files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from services.publisher.core.lane import Lane
from shared.bus.log import TP
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.bus.reader import Reader
from shared.contracts.topics import LEDGERS
from shared.verify.reading import Logs
from shared.verify.run import Report, verify
from simulator.engine.cell import LANE

TOPICS = (*LEDGERS, "commands", "reports", "events")
"""All that a simulation writes."""


def publish(broker: MemoryBroker) -> int:
    """Every public event of every ledger into the topic `events`; how many there are."""
    lane, published = Lane({}), 0
    for ledger in LEDGERS:
        reader = Reader(ledger, LANE)
        for entry in broker.entries(TP(ledger, LANE)):
            accepted = reader.offer(entry.offset, entry.value)
            for event in lane.publish(accepted) if accepted else ():
                broker.append(TP("events", LANE), event.value, event.key)
                published += 1
    return published


async def verified(broker: MemoryBroker) -> Report:
    """Every rule of `berth verify` that needs no database, over published ledgers."""
    return await verify(Logs(MemoryLog(broker), 1, quiet_s=0.0, patience_s=0.0), None)


def dump(broker: MemoryBroker, folder: Path) -> list[Path]:
    """A file `<topic>-<partition>.jsonl` per topic: line n is the value at offset n."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_written(broker, topic, folder) for topic in TOPICS]


def _written(broker: MemoryBroker, topic: str, folder: Path) -> Path:
    path = folder / f"{TP(topic, LANE).key}.jsonl"
    with path.open("wb") as out:
        for entry in broker.entries(TP(topic, LANE)):
            out.write((entry.value or b"") + b"\n")
    return path


def restored(folder: Path, topics: Iterable[str] = TOPICS) -> MemoryBroker:
    """The broker that `dump` was given, keys aside."""
    broker = MemoryBroker()
    for topic in topics:
        path = folder / f"{TP(topic, LANE).key}.jsonl"
        for line in path.read_bytes().splitlines():
            broker.append(TP(topic, LANE), line)
    return broker
