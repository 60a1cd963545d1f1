"""The check at the end of a chaos run: `verify` over ledgers, read models and acknowledgements."""

from __future__ import annotations

import asyncio
import time

from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.command import Json
from shared.projections import cursor
from shared.projections.database import connect
from shared.verify.reading import InstallationLog
from shared.verify.report import VerifyReport
from shared.verify.run import verify


async def check_installation(loaded: LoadedStack, all_ended: bool) -> Json:
    """Return counts and violations; every acknowledged command must be in its topic."""
    began = time.monotonic()
    conn = await connect(loaded.bench.stack.postgres)
    try:
        await wait_until_projected(conn)
        logs = InstallationLog(loaded.bench.log(), loaded.bench.stack.partitions, catch_up_s=60.0)
        report: VerifyReport = await verify(
            logs, conn, loaded.report_line, acked=list(loaded.acked)
        )
    finally:
        await conn.close()
    return {
        "jobs_acknowledged": len(loaded.acked),
        "jobs_ended": len(loaded.acked.keys() & loaded.ended),
        "all_ended": all_ended,
        "verify": "ok" if report.ok else "failed",
        "violations": [str(violation) for violation in report.violations[:20]],
        "rules": report.rules,
        "counts": dict(report.counts),
        "judged_in_s": round(time.monotonic() - began),
    }


async def wait_until_projected(conn: object) -> None:
    """Wait until the cursors of the read models do not advance for half a second."""
    for _ in range(100):
        before = await cursor.read(conn)
        await asyncio.sleep(0.5)
        if await cursor.read(conn) == before:
            return
