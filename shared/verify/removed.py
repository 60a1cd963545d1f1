"""Records that the retention of a topic may have removed, so that their lack proves nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.bus.logs.log import Log
from shared.contracts.topics import TOPICS
from shared.ledger.partition import TP

CLOCKS_MS = 2 * 3_600_000
"""By which the clocks of this host, of the broker and of a ledger may differ: after a step back by
an hour the time of a ledger is ahead of the broker's, which removes records sooner than it says."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The partitions of which records were removed, until `now` in ms."""

    now: int = 0
    begins: dict[TP, int] = field(default_factory=dict)
    """First offset of these partitions."""

    def has(self, topic: str, partition: int, offset: int) -> bool:
        """Return whether a record was removed."""
        return offset < self.begins.get(TP(topic, partition), 0)

    def may_have(self, topic: str, at: int) -> bool:
        """Return whether a record that was written at this time or later may be removed."""
        is_old = at <= self.now - TOPICS[topic].retention_ms + CLOCKS_MS
        return is_old and any(tp.topic == topic for tp in self.begins)

    def is_truncated(self, topic: str, partition: int) -> bool:
        """Return whether records of a partition were removed."""
        return TP(topic, partition) in self.begins


async def read_removed(log: Log, names: Iterable[str], lanes: int, now: int) -> Removed:
    tps = [TP(name, lane) for name in names for lane in range(lanes)]
    await log.start()
    try:
        begins = {tp: await log.begin(tp) for tp in tps}
    finally:
        await log.stop()
    return Removed(now, {tp: begin for tp, begin in begins.items() if begin})
