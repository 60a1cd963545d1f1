"""A partition has changed if it lacks its last known record, unless retention has removed it."""

from __future__ import annotations

from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.partition import TP
from shared.verify.anchors import anchors_of, read_changed

COMMANDS = TP("commands", 0)


def broker_of(*values: bytes) -> MemoryBroker:
    broker = MemoryBroker()
    for value in values:
        broker.append(COMMANDS, value)
    return broker


async def changed(*values: bytes, begin: int = 0) -> bool:
    anchors = anchors_of({COMMANDS: broker_of(b"a", b"b").entries(COMMANDS)[-1]})
    broker = broker_of(*values)
    broker.trim(COMMANDS, begin)
    return bool(await read_changed(MemoryLog(broker), anchors))


async def test_a_partition_that_only_grew_is_unchanged() -> None:
    assert not await changed(b"a", b"b")
    assert not await changed(b"a", b"b", b"c")


async def test_a_shorter_partition_or_another_record_is_a_change() -> None:
    assert await changed(b"a")
    assert await changed(b"a", b"x")
    assert await changed(b"a", b"x", b"b")


async def test_a_partition_without_its_anchor_by_retention_is_unchanged() -> None:
    assert await changed(b"a", b"x", b"c", begin=1)
    assert not await changed(b"a", b"x", b"c", begin=2)
