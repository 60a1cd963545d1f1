"""Runs the verifier over a stack's ledgers and read models."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from infra.supervisor.running import RunningStack
from shared.bus.archive.opening import with_archive
from shared.bus.logs.kafka import KafkaLog
from shared.process.progress import ReportLine
from shared.projections.database import connect
from shared.verify.reading import InstallationLog
from shared.verify.rules import Violation
from shared.verify.run import verify


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of a verification; one line per violation."""

    violations: list[str]
    open: list[str]
    """Inputs that were quarantined and wait for an operator: a task, no violation."""
    counts: dict[str, int]
    rules: list[str]


def verified(stack: RunningStack, report_line: ReportLine = lambda _: None) -> Verified:
    """Verify all ledgers, and the read models if the stack has a database."""
    return asyncio.run(_verified(stack, report_line))


async def _verified(stack: RunningStack, report_line: ReportLine) -> Verified:
    conn = await connect(stack.postgres)
    try:
        log = with_archive(
            KafkaLog(stack.connection("verify"), client="berth-verify"), stack.archive
        )
        report = await verify(InstallationLog(log, stack.partitions), conn, report_line)
    finally:
        await conn.close()
    findings = _lines(report.violations), _lines(report.open)
    return Verified(*findings, dict(report.counts), report.rules)


def _lines(findings: list[Violation]) -> list[str]:
    return [f"{finding.rule}: {finding.position}: {finding.detail}" for finding in findings]
