"""The projector has reached the records that the ledgers held when a verification began."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import monotonic

from asyncpg import Connection

from shared.ledger.reader import Cursor
from shared.projections.cursor import read as read_cursors
from shared.projections.source import LedgerPartition
from shared.verify.report import VerifyReport
from shared.verify.rules import Violation

PROJECTED = "the projector has read the ledgers to their ends"
UNMOVED_S = 10.0
"""A projector that projects nothing for so long, though records wait, is a violation."""
MOST_S = 60.0
"""One that goes on, but is still behind after so long, is named as a task."""
LOOK_S = 0.2


async def check_projected(
    report: VerifyReport,
    conn: Connection,
    ends: Mapping[LedgerPartition, int],
    *,
    unmoved_s: float = UNMOVED_S,
    most_s: float = MOST_S,
) -> None:
    """Wait until its cursors are at the ends, the last seq of each ledger partition."""
    report.rules.append(PROJECTED)
    began_s = moved_s = monotonic()
    seqs: dict[LedgerPartition, int] = {}
    while True:
        cursors = await read_cursors(conn)
        seen = {partition: cursors.get(partition, Cursor()).seq for partition in ends}
        behind = {
            partition: ends[partition] - seq
            for partition, seq in seen.items()
            if seq < ends[partition]
        }
        now_s = monotonic()
        if seen != seqs:
            seqs, moved_s = seen, now_s
        if not behind or now_s - began_s >= most_s or now_s - moved_s >= unmoved_s:
            break
        await asyncio.sleep(LOOK_S)
    stands = now_s - moved_s >= unmoved_s
    for (ledger, lane), records in sorted(behind.items()):
        detail = f"{records} records are not projected" + (
            f", and none was for {unmoved_s:.0f} s" if stands else " yet"
        )
        findings = report.violations if stands else report.open
        findings.append(Violation(PROJECTED, f"{ledger}/{lane}", detail))
    report.counts["open"] = len(report.open)
