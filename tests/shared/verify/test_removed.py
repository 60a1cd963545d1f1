"""Records that retention may have removed."""

from __future__ import annotations

from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.topics import DAY_MS
from shared.ledger.partition import TP
from shared.verify.removed import CLOCKS_MS, Removed, read_removed

NOW = 100 * DAY_MS
EVENTS = TP("events", 1)


async def test_a_partition_without_its_beginning_is_truncated() -> None:
    broker = MemoryBroker()
    for _ in range(3):
        broker.append(EVENTS, b"x")
    broker.trim(EVENTS, 2)
    removed = await read_removed(MemoryLog(broker), ["events", "dead"], 2, NOW)
    assert removed == Removed(NOW, {EVENTS: 2})
    assert removed.is_truncated("events", 1)
    assert not removed.is_truncated("events", 0)
    assert [removed.has("events", 1, offset) for offset in (1, 2)] == [True, False]


def test_only_what_is_older_than_the_retention_may_be_removed() -> None:
    removed = Removed(NOW, {EVENTS: 2})
    assert removed.may_have("events", NOW - 31 * DAY_MS)
    assert not removed.may_have("events", NOW - 29 * DAY_MS)


def test_a_clock_that_is_an_hour_off_makes_no_violation_of_what_retention_has_removed() -> None:
    removed, limit = Removed(NOW, {EVENTS: 2}), NOW - 30 * DAY_MS
    assert removed.may_have("events", limit + 3_600_000)
    assert not removed.may_have("events", limit + CLOCKS_MS + 1)


def test_a_topic_with_its_beginning_lacks_nothing() -> None:
    assert not Removed(NOW).may_have("events", 0)
