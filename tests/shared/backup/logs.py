"""Small logs in memory, and their backup."""

from __future__ import annotations

import asyncio
from pathlib import Path

from shared.backup.save import save, saved_topics
from shared.bus.logs.log import Entry
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.attempts import JobCancelled
from shared.ledger.partition import TP

TOPICS_OF_TWO = saved_topics(1, ["ada"])
JOB = JobCancelled(job_id="a.0", tenant="red")


def written_log(commands: int = 3) -> MemoryBroker:
    broker = MemoryBroker()
    for n in range(commands):
        broker.append(TP("commands", 0), b"c%d" % n, b"key", (("traceparent", b"00-aa"),))
    return broker


async def back_up(broker: MemoryBroker, folder: Path, log: MemoryLog | None = None) -> None:
    await save(log or MemoryLog(broker), TOPICS_OF_TWO, 1, folder)


class MemoryRestorer:
    """Appends to another broker in memory."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker

    async def post(self, tp: TP, entry: Entry) -> asyncio.Future[int]:
        assert entry.value is not None
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(self.broker.append(tp, entry.value, entry.key, entry.headers))
        return done


class CutLog(MemoryLog):
    """A log whose first two records are deleted."""

    async def begin(self, tp: TP) -> int:
        return 2 if tp.topic in ("commands", "submissions.ada") else 0
