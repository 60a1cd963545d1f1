"""Runs the verifier over a stack's ledgers and read models."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from infra.supervisor.running import RunningStack
from shared.bus.archive.opening import with_archive
from shared.bus.logs.kafka import KafkaLog
from shared.process.progress import ReportLine
from shared.projections.database import connect
from shared.verify.marks import Marks
from shared.verify.reading import InstallationLog
from shared.verify.rules import Violation
from shared.verify.run import verify

MARKS = "verify"
"""Folder of the data directory with the mark of the last green run."""


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of a verification; one line per violation."""

    violations: list[str]
    open: list[str]
    """Inputs that were quarantined and wait for an operator: a task, no violation."""
    counts: dict[str, int]
    rules: list[str]
    since_ms: int
    """Time of the run from which this one went on; 0: it has read everything."""


def verified(
    stack: RunningStack, report_line: ReportLine = lambda _: None, *, whole: bool = False
) -> Verified:
    """Verify all ledgers and the read models, from the last mark on unless `whole`."""
    return asyncio.run(_verified(stack, report_line, whole))


async def _verified(stack: RunningStack, report_line: ReportLine, whole: bool) -> Verified:
    conn = await connect(stack.postgres)
    try:
        log = with_archive(
            KafkaLog(stack.connection("verify"), client="berth-verify"), stack.archive
        )
        installation = InstallationLog(log, stack.partitions)
        # The embedded broker keeps nothing: behind a restart its ledgers are others.
        marks = Marks(stack.data_dir / MARKS) if stack.durable else None
        report = await verify(
            installation, conn, report_line, marks=marks, whole=whole, is_projecting=True
        )
    finally:
        await conn.close()
    findings = _lines(report.violations), _lines(report.open)
    return Verified(*findings, dict(report.counts), report.rules, report.since_ms)


def _lines(findings: list[Violation]) -> list[str]:
    return [f"{finding.rule}: {finding.position}: {finding.detail}" for finding in findings]
