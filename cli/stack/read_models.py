"""Read models of a stack on this machine: status and rebuild."""

from __future__ import annotations

import asyncio
import time
from typing import TypedDict

from infra.supervisor.running import RunningStack
from shared.bus.archive.opening import with_archive
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Log
from shared.ledger.partition import TP
from shared.process.progress import ReportLine
from shared.projections import cursor
from shared.projections.database import connect
from shared.projections.rebuild import rebuild
from shared.projections.source import ledger_partitions


class Rebuild(TypedDict):
    """Result of a rebuild; `tables` maps each table to whether the live one was equal.

    `left` has per table the rows that are in the ledgers, and no longer in the read models.
    """

    events: int
    tables: dict[str, bool]
    different: list[str]
    swapped: bool
    left: dict[str, int]
    wall_s: float


def ledger_positions(stack: RunningStack) -> list[dict[str, object]]:
    """Return how far the projector has read each ledger partition, and where it ends."""
    return asyncio.run(_ledger_positions(stack))


async def _ledger_positions(stack: RunningStack) -> list[dict[str, object]]:
    conn = await connect(stack.postgres)
    try:
        cursors = await cursor.read(conn)
    finally:
        await conn.close()
    log = _log(stack)
    await log.start()
    try:
        ends = {place: await log.end(TP(*place)) for place in ledger_partitions(stack.partitions)}
    finally:
        await log.stop()
    rows: list[dict[str, object]] = []
    for place, end in ends.items():
        at = cursors.get(place)
        reached = at.next if at else 0
        # The end reported by the embedded broker may lag behind the records already read.
        rows.append(
            {
                "ledger": place[0],
                "partition": place[1],
                "seq": at.seq if at else 0,
                "next": reached,
                "end": max(end, reached),
                "behind": max(0, end - reached),
            }
        )
    return rows


def rebuilt(stack: RunningStack, swap: bool, report_line: ReportLine) -> Rebuild:
    """Rebuild the read models beside the live ones, compare them, and swap them in."""
    began_s = time.monotonic()
    folded = 0

    def progress(events: int) -> None:
        nonlocal folded
        folded += events
        report_line(f"{folded:,} events")

    result = asyncio.run(
        rebuild(stack.postgres, _log(stack), stack.partitions, swap=swap, report_events=progress)
    )
    different = set(result.different)
    return Rebuild(
        events=result.events,
        tables={name: name not in different for name in sorted(result.live)},
        different=sorted(different),
        swapped=result.swapped,
        left={table: rows for table, rows in result.left.items() if rows},
        wall_s=round(time.monotonic() - began_s, 2),
    )


def _log(stack: RunningStack) -> Log:
    return with_archive(
        KafkaLog(stack.connection("verify"), client="berth-projections"), stack.archive
    )
