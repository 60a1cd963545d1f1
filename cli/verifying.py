"""Runs the independent fold over a stack's ledgers and read models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from infra.supervisor.running import RunningStack
from shared.bus.kafka import KafkaLog
from shared.projections.database import connect
from shared.verify.reading import InstallationLog
from shared.verify.run import verify

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Verified:
    """Green when there is no violation; each is one line."""

    violations: list[str]
    counts: dict[str, int]
    rules: list[str]


def verified(stack: RunningStack, progress: Progress = lambda _: None) -> Verified:
    """Reads everything; the database is asked as well where the stack has one."""
    return asyncio.run(_verified(stack, progress))


async def _verified(stack: RunningStack, progress: Progress) -> Verified:
    conn = await connect(stack.postgres)
    try:
        log = KafkaLog(stack.connection("verify"), client="berth-verify")
        report = await verify(InstallationLog(log, stack.partitions), conn, progress)
    finally:
        await conn.close()
    told = [f"{each.rule}: {each.where}: {each.what}" for each in report.violations]
    return Verified(told, dict(report.counts), report.rules)
