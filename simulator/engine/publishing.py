"""Public events of a simulation's ledgers, and their verification."""

from __future__ import annotations

from services.publisher.core.lane import PublisherLane
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.topics import LEDGERS
from shared.ledger.partition import TP
from shared.ledger.reader import Reader
from shared.verify.reading import InstallationLog
from shared.verify.report import VerifyReport
from shared.verify.run import verify
from simulator.engine.lane import LANE


def publish(broker: MemoryBroker) -> int:
    """Publish every public event of every ledger to the topic `events`; return their number."""
    lane, published = PublisherLane({}), 0
    for ledger in LEDGERS:
        reader = Reader(ledger, LANE)
        for entry in broker.entries(TP(ledger, LANE)):
            accepted = reader.offer(entry.offset, entry.value)
            for event in lane.publish(accepted) if accepted else ():
                broker.append(TP("events", LANE), event.value, event.key)
                published += 1
    return published


async def verify_ledgers(broker: MemoryBroker) -> VerifyReport:
    """Check every rule of `berth verify` that needs no database, over published ledgers."""
    return await verify(InstallationLog(MemoryLog(broker), 1, quiet_s=0.0, catch_up_s=0.0), None)
