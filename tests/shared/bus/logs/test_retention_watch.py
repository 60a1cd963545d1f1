from __future__ import annotations

from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.bus.logs.retention_watch import DAY_MS, Kept, RetentionWatch
from shared.ledger.partition import TP

KEPT = Kept("events", 2, 30 * DAY_MS)
FIRST, SECOND = TP("events", 0), TP("events", 1)


async def behind_s(broker: MemoryBroker, now: int) -> float:
    watch = RetentionWatch(lambda: MemoryLog(broker), KEPT)
    await watch.look(MemoryLog(broker), now)
    return watch.behind_s()


async def test_a_record_may_be_as_old_as_its_retention_and_a_segment() -> None:
    broker = MemoryBroker()
    assert await behind_s(broker, 100 * DAY_MS) == 0
    broker.append(FIRST, b"first", timestamp=1)
    broker.append(SECOND, b"later", timestamp=DAY_MS)
    assert await behind_s(broker, 37 * DAY_MS) == 0
    assert await behind_s(broker, 38 * DAY_MS + 1) == 86_400


async def test_a_record_that_is_gone_does_not_count() -> None:
    broker = MemoryBroker()
    for day in (1, 50):
        broker.append(FIRST, b"record", timestamp=day * DAY_MS)
    broker.trim(FIRST, 1)
    assert await behind_s(broker, 60 * DAY_MS) == 0
