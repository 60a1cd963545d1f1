"""`berth verify`: read all topics from offset 0 and check every rule."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from asyncpg import Connection

from shared.bus.clock import now_ms
from shared.contracts.topics import INPUTS, LOSSY_INPUTS
from shared.ledger.errors import ProtocolViolation
from shared.ledger.reader import Cursor
from shared.process.progress import ReportLine
from shared.projections.cursor import read as read_cursors
from shared.projections.ledger_events import decode_events
from shared.projections.source import LedgerPartition, cursor_after, ledger_partitions
from shared.verify.arrays import ArrayCancelRule
from shared.verify.commands import CommandAnswerRule
from shared.verify.events import PublishedEventRule
from shared.verify.gpus import GpuCapacityRule
from shared.verify.lifecycle import JobLifecycleRule
from shared.verify.llm_lifecycle import LlmLifecycleRule
from shared.verify.llm_limits import BudgetRule
from shared.verify.llm_rows import LlmRowsRule
from shared.verify.poison import DeadLetterRule, QuarantineRule
from shared.verify.reading import (
    Consumption,
    InputRecords,
    InstallationLog,
    read_dead_letters,
    read_inputs,
    read_ledgers,
    read_published,
)
from shared.verify.readmodels import ReadModelRule, StoredRows, read_stored_rows
from shared.verify.releases import ReleaseProofRule
from shared.verify.removed import read_removed
from shared.verify.rules import Bounds, Rule, Violation
from shared.verify.workers import ReadyWorkerRule

READ_EVERY_S = 0.2
CHAIN = "the chain of accepted records is whole"
LOSSY = (*sorted(LOSSY_INPUTS), "events", "dead")
"""Topics of which records are removed."""
ACKED = "what was acknowledged is in its topic"


@dataclass(slots=True)
class VerifyReport:
    """Violations, figures and names of the checked rules; green without violations.

    `open` are inputs that wait for an operator: a task, no violation.
    """

    violations: list[Violation] = field(default_factory=list)
    open: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rules: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.violations


async def verify(
    installation: InstallationLog,
    conn: Connection | None,
    report_line: ReportLine = lambda _: None,
    *,
    acked: Collection[str] = (),
) -> VerifyReport:
    """Check the present contents of the log; the read models are left out without `conn`.

    `acked` are ids of acknowledged commands: each must be in its topic.

    The ledgers are read twice: the first pass determines how far each service has read its inputs,
    so that inputs in transit are no violation.
    """
    report = VerifyReport()
    try:
        consumption = await check_chain(installation, report, report_line)
    except ProtocolViolation as error:
        report.violations.append(Violation(CHAIN, "ledgers", str(error)))
        return report
    rules = await rules_for(installation, conn, consumption, report, report_line, acked)
    quarantine = QuarantineRule()
    report_line("checking every event")
    async for batch in read_ledgers(installation):
        for event in decode_events(batch):
            quarantine.observe(event)
            for rule in rules:
                rule.observe(event)
    for rule in rules:
        report.rules.append(rule.name)
        report.violations.extend(rule.finish())
    report.open.extend(quarantine.open())
    report.counts["open"] = len(report.open)
    return report


async def check_chain(
    installation: InstallationLog, report: VerifyReport, report_line: ReportLine
) -> Consumption:
    """First pass: apply the reader rule to every ledger; raises ProtocolViolation."""
    report_line("reading every ledger")
    consumption = Consumption()
    cursors = dict.fromkeys(ledger_partitions(installation.partitions), Cursor())
    report.rules.append(CHAIN)
    async for batch in read_ledgers(installation):
        for accepted in batch:
            partition = (accepted.ledger, accepted.partition)
            check_time(report, partition, cursors[partition].at, accepted.record.at)
            cursors[partition] = cursor_after(accepted)
            report.counts["events"] += consumption.add(accepted)
        report.counts["records"] += len(batch)
    for partition, cursor in cursors.items():
        check_inputs(report, partition, cursor)
        consumption.set_cursor(partition, cursor)
    return consumption


def check_time(
    report: VerifyReport, partition: LedgerPartition, previous_ms: int, at_ms: int
) -> None:
    """Times of a ledger partition never decrease."""
    if at_ms < previous_ms:
        position = f"{partition[0]}/{partition[1]}"
        detail = f"time went back from {previous_ms} to {at_ms}"
        report.violations.append(Violation(CHAIN, position, detail))


def check_inputs(report: VerifyReport, partition: LedgerPartition, cursor: Cursor) -> None:
    """Check that the ledger read only the declared inputs of its service."""
    ledger, lane = partition
    declared = {f"{topic}-{lane}" for topic in INPUTS[ledger]} | {"access-0"}
    for key in cursor.inputs.keys() - declared:
        report.violations.append(Violation(CHAIN, f"{ledger}/{lane}", f"undeclared input {key}"))


def check_acked(report: VerifyReport, acked: Collection[str], inputs: InputRecords) -> None:
    """Check that every acknowledged command is in its topic."""
    if acked:
        report.rules.append(ACKED)
    for command_id in acked:
        if command_id not in inputs.commands:
            detail = "was acknowledged and is lost"
            report.violations.append(Violation(ACKED, command_id, detail))


async def rules_for(
    installation: InstallationLog,
    conn: Connection | None,
    consumption: Consumption,
    report: VerifyReport,
    report_line: ReportLine,
    acked: Collection[str],
) -> list[Rule]:
    """Read the topics beside the ledgers, and return the rules of the second pass."""
    report_line("reading commands, dead letters and events")
    inputs = await read_inputs(installation, consumption)
    check_acked(report, acked, inputs)
    report.counts["commands"] = len(inputs.commands)
    report.counts["undecodable"] = len(inputs.undecodable)
    lanes = range(installation.partitions)
    admission_seqs = {n: consumption.last_seq_read("placement", "admission", n) for n in lanes}
    placement_seqs = {n: consumption.last_seq_read("admission", "placement", n) for n in lanes}
    bounds = Bounds(dict(consumption.seqs))
    removed = await read_removed(installation.log, LOSSY, installation.partitions, now_ms())
    rules: list[Rule] = [
        CommandAnswerRule(inputs.commands, bounds, placement_seqs, removed),
        ArrayCancelRule(),
        PublishedEventRule(await read_published(installation, consumption), bounds, removed),
        DeadLetterRule(inputs.undecodable, await read_dead_letters(installation), bounds, removed),
        JobLifecycleRule(admission_seqs, bounds),
        GpuCapacityRule(),
        ReleaseProofRule(),
        ReadyWorkerRule(inputs.ready),
        LlmLifecycleRule(),
        BudgetRule(),
    ]
    if conn is not None:
        stored = await wait_for_rows(conn, consumption, installation.catch_up_s)
        for table, mark in stored.marks.items():
            if mark.row_count:
                report.counts[f"rows of {table} that have left"] = mark.row_count
        rules += [ReadModelRule(stored), LlmRowsRule(stored.llm, stored.seqs)]
    return rules


async def wait_for_rows(
    conn: Connection, consumption: Consumption, catch_up_s: float
) -> StoredRows:
    """Return the rows once the projector has reached the end of the first pass, or in time."""
    for _ in range(int(catch_up_s / READ_EVERY_S)):
        cursors = await read_cursors(conn)
        if all(p in cursors and cursors[p].seq >= n for p, n in consumption.seqs.items() if n):
            break
        await asyncio.sleep(READ_EVERY_S)
    return await read_stored_rows(conn)
