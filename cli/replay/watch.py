"""Folds ledgers of a running stack into figures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from shared.bus.archive.opening import with_archive
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.tail import LedgerTail
from shared.ledger.decider import Fact
from shared.process.connection import Connection

LEDGERS = ("admission", "placement")
"""Ledgers of the progress of jobs."""
POLL_S = 0.2
LOOK_S = 0.1


async def follow(
    see: Callable[[Iterable[Fact]], None],
    connection: Connection,
    partitions: int,
    ledgers: Sequence[str] = LEDGERS,
    archive: str = "",
) -> None:
    """Pass the facts of the ledgers to `see`, until cancelled; `archive` has their beginnings."""
    log = with_archive(KafkaLog(connection, client="berth-watch"), archive)
    tail = LedgerTail(log, {ledger: range(partitions) for ledger in ledgers})
    try:
        await tail.start()
        while True:
            for accepted in await tail.poll(POLL_S):
                see(accepted.facts())
    finally:
        await tail.stop()


async def until(is_so: Callable[[], bool], timeout_s: float) -> bool:
    """Wait until the predicate holds; return False on timeout."""
    ends_s = asyncio.get_running_loop().time() + timeout_s
    while not is_so():
        if asyncio.get_running_loop().time() > ends_s:
            return False
        await asyncio.sleep(LOOK_S)
    return True
