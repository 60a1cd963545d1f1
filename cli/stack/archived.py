"""The archive of a stack, as an operator sees and extends it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from infra.supervisor.running import RunningStack
from shared.bus.archive.archive import Archive
from shared.bus.archive.archiver import Archiver, ArchiverOptions
from shared.bus.archive.archiving import archived_partitions
from shared.bus.archive.chain import Chain
from shared.bus.archive.opening import open_store
from shared.bus.clock import now_ms
from shared.bus.logs.kafka import KafkaLog
from shared.ledger.partition import TP

AWAY_S = 10.0
"""How long a broker that does not answer is waited for."""


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """Offsets of one partition: `begin` to `end` of the topic, and how far it is archived."""

    topic: str
    partition: int
    begin: int
    archived: int
    checked: int
    end: int
    entries: int
    bytes: int
    last_entry_ms: int

    def as_json(self) -> dict[str, object]:
        return asdict(self)


async def statuses(stack: RunningStack, tps: Iterable[TP]) -> list[PartitionStatus]:
    """Return the status of each partition."""
    archive = Archive(open_store(stack.archive))
    log = await started_log(stack)
    try:
        return [await _status(log, archive, tp) for tp in tps]
    finally:
        await log.stop()


async def _status(log: KafkaLog, archive: Archive, tp: TP) -> PartitionStatus:
    chain = await asyncio.to_thread(archive.refresh, tp)
    checked = await asyncio.to_thread(archive.checked, tp)
    return PartitionStatus(
        topic=tp.topic,
        partition=tp.partition,
        begin=await log.begin(tp),
        archived=chain.next,
        checked=chain.entries[checked].next if checked >= 0 else 0,
        end=await log.end(tp),
        entries=len(chain),
        bytes=sum(entry.bytes for entry in chain.entries),
        last_entry_ms=chain.end.made_ms,
    )


async def archive_now(stack: RunningStack, tps: Iterable[TP]) -> int:
    """Archive each partition up to its present end; return how many entries were made."""
    options = ArchiverOptions(f"berth-ledgers-{os.getpid()}")
    log = await started_log(stack)
    archiver = Archiver(log, Archive(open_store(stack.archive)), options, now_ms)
    try:
        return sum([await archiver.archive(tp, await log.end(tp)) for tp in tps])
    finally:
        await log.stop()


def archived_chains(stack: RunningStack) -> dict[TP, Chain]:
    """Return what is archived of each partition; blocks."""
    archive = Archive(open_store(stack.archive))
    return {tp: archive.refresh(tp) for tp in archived_partitions(stack.partitions)}


async def started_log(stack: RunningStack) -> KafkaLog:
    """Return a started client of the topics alone."""
    log = KafkaLog(stack.connection("verify"), client="berth-ledgers", max_away_s=AWAY_S)
    await log.start()
    return log
