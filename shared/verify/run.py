"""`berth verify`: read all topics, from their begin or the last mark, and check every rule."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from asyncpg import Connection

from shared.bus.clock import now_ms
from shared.contracts.topics import CUSTODIAN, LOSSY_INPUTS
from shared.ledger.errors import ProtocolViolation
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor
from shared.process.progress import ReportLine
from shared.projections.cursor import read as read_cursors
from shared.projections.ledger_events import decode_events
from shared.projections.retention import Mark
from shared.projections.source import LedgerPartition, cursor_after, ledger_partitions
from shared.verify.anchors import Anchor, anchors_of, read_changed
from shared.verify.arrays import ArrayCancelRule
from shared.verify.commands import CommandAnswerRule
from shared.verify.events import PublishedEventRule
from shared.verify.gpus import GpuCapacityRule
from shared.verify.histories import TABLE as HISTORIES
from shared.verify.histories import HistoryRule, StoredHistories
from shared.verify.lifecycle import JobLifecycleRule
from shared.verify.llm_lifecycle import LlmLifecycleRule
from shared.verify.llm_limits import BudgetRule
from shared.verify.llm_rows import LlmRowsRule
from shared.verify.marks import NO_MARK, Marks, VerifyMark, fields_of
from shared.verify.poison import DeadLetterRule, QuarantineRule
from shared.verify.projected import check_projected
from shared.verify.reading import (
    Consumption,
    InstallationLog,
    read_dead_letters,
    read_inputs,
    read_ledgers,
    read_published,
)
from shared.verify.readmodels import ReadModelRule, StoredRows, read_stored_rows
from shared.verify.releases import ReleaseProofRule
from shared.verify.removed import Removed, read_removed
from shared.verify.report import (
    CHAIN,
    VerifyReport,
    check_acked,
    check_changed,
    check_inputs,
    check_time,
)
from shared.verify.row_store import RowStore
from shared.verify.rules import Bounds, Rule, Violation, observers
from shared.verify.transfers import TransferRule
from shared.verify.workers import ReadyWorkerRule

READ_EVERY_S = 0.2
LOSSY = (*sorted(LOSSY_INPUTS), "events", "dead")
"""Topics of which records are removed."""


async def verify(
    installation: InstallationLog,
    conn: Connection | None,
    report_line: ReportLine = lambda _: None,
    *,
    acked: Collection[str] = (),
    marks: Marks | None = None,
    whole: bool = False,
    is_projecting: bool = False,
) -> VerifyReport:
    """Check the present contents of the log; the read models are left out without `conn`.

    Rows are compared as far as they are projected. Where a projector `is_projecting`, it has to
    reach the end too, see `check_projected`.

    `acked` are ids of acknowledged commands: each must be in its topic. With `marks` the run goes
    on behind the last mark, unless it is to be `whole`, and leaves another one if it is green. It
    is whole too where a topic holds other records than before, or where rows are older.

    The ledgers are read twice: the first pass determines how far each service has read its inputs,
    so that inputs in transit are no violation.
    """
    run = VerifyRun(installation, conn, report_line)
    if marks is not None and not whole:
        mark, kept = await asyncio.to_thread(marks.load)
        changed = await read_changed(installation.log, mark.anchors)
        run.note_changed(changed)
        if not changed and (conn is None or await has_rows_of(conn, mark)):
            run.go_on(mark, kept)
    report = await run.check(acked)
    if conn is not None and is_projecting:
        await check_projected(report, conn, run.ends)
    if marks is not None and report.ok:
        report_line("storing the mark")
        if not await asyncio.to_thread(marks.store, run.mark(now_ms()), run.kept):
            report_line("the mark was not stored: the next run reads the same again")
    return report


async def has_rows_of(conn: Connection, mark: VerifyMark) -> bool:
    """Return whether the mark is of rows, and those of Postgres are not older, as in a rebuild."""
    cursors = await read_cursors(conn)
    return mark.has_rows and all(
        cursors.get(partition, Cursor()).seq >= cursor.seq
        for partition, cursor in mark.cursors.items()
    )


class VerifyRun:
    """One run: the mark that it goes on from, what it has read, and its rules."""

    def __init__(
        self, installation: InstallationLog, conn: Connection | None, report_line: ReportLine
    ) -> None:
        self._installation = installation
        self._conn = conn
        self._report_line = report_line
        self._before = NO_MARK
        self._report = VerifyReport()
        self._rules: list[Rule] = []
        self._quarantine = QuarantineRule()
        self._row_rules: list[Rule] = []
        self._observers: dict[str, list[Rule]] = {}
        self._row_observers: dict[str, list[Rule]] = {}
        self._compared: dict[LedgerPartition, int] = {}
        self._cursors: dict[LedgerPartition, Cursor] = {}
        self._seqs: dict[LedgerPartition, int] = {}
        self._topics: dict[TP, int] = {}
        self._anchors: dict[TP, Anchor] = {}
        self.ends: dict[LedgerPartition, int] = {}
        """Last seq of each ledger partition as the first pass has read it."""
        self.kept = RowStore()
        """Rows of all rules, by table and key; see their field of this name."""

    def go_on(self, mark: VerifyMark, kept: RowStore) -> None:
        """Read on behind a mark."""
        self._before, self.kept = mark, kept
        self._report.since_ms = mark.made_ms

    def note_changed(self, changed: Collection[TP]) -> None:
        """Report the topics that lack what the run before has read, unless retention may do so."""
        if changed:
            self._report_line("topics were made anew: reading everything")
            check_changed(self._report, changed)

    async def check(self, acked: Collection[str]) -> VerifyReport:
        """Return the report, without the violations of the rules if the log cannot be read."""
        try:
            await self._read(acked)
        except ProtocolViolation as error:
            self._report.violations.append(Violation(CHAIN, "log", str(error)))
            return self._report
        for rule in (*self._rules, *self._row_rules):
            self._report.rules.append(rule.name)
            self._report.violations.extend(rule.finish())
        self._report.open.extend(self._quarantine.open())
        self._report.counts["open"] = len(self._report.open)
        return self._report

    async def _read(self, acked: Collection[str]) -> None:
        """Read all, and give it to the rules; raises ProtocolViolation."""
        consumption = await self._check_chain()
        await self._make_rules(consumption, acked)
        self._before.give(self._all_rules)
        self._report_line("checking every event")
        self._cursors = dict(self._before.cursors)
        self._seqs = dict(self._before.seqs)
        ledgers = {ledger for ledger, _ in ledger_partitions(1)}
        self._observers = {ledger: observers(self._all_rules, ledger) for ledger in ledgers}
        self._row_observers = {ledger: observers(self._row_rules, ledger) for ledger in ledgers}
        async for batch in read_ledgers(self._installation, self._before.cursors):
            for accepted in batch:
                self._observe(accepted)

    def mark(self, made_ms: int) -> VerifyMark:
        """Return the mark of this run, which must be green."""
        rules = self._all_rules
        pending = frozenset(
            event_id
            for rule in rules
            if isinstance(rule, PublishedEventRule)
            for event_id in rule.pending
        )
        return VerifyMark(
            made_ms,
            self._cursors,
            self._seqs,
            self._topics,
            self._anchors,
            fields_of(rules),
            pending,
            has_rows=bool(self._row_rules),
        )

    @property
    def _all_rules(self) -> list[Rule]:
        return [*self._rules, *self._row_rules, self._quarantine]

    async def _check_chain(self) -> Consumption:
        """First pass: apply the reader rule to every ledger; raises ProtocolViolation."""
        self._report_line("reading every ledger")
        report, consumption = self._report, Consumption()
        cursors = dict.fromkeys(ledger_partitions(self._installation.partitions), Cursor())
        cursors |= self._before.cursors
        report.rules.append(CHAIN)
        async for batch in read_ledgers(self._installation, self._before.cursors):
            for accepted in batch:
                partition = (accepted.ledger, accepted.partition)
                check_time(report, partition, cursors[partition].at, accepted.record.at)
                cursors[partition] = cursor_after(accepted)
                report.counts["events"] += consumption.add(accepted)
            report.counts["records"] += len(batch)
        for partition, cursor in cursors.items():
            self.ends[partition] = cursor.seq
            check_inputs(report, partition, cursor)
            consumption.set_cursor(partition, cursor)
        return consumption

    def _observe(self, accepted: Accepted) -> None:
        """Give the events of a record to the rules that have not observed them before the mark."""
        partition, seq = (accepted.ledger, accepted.partition), accepted.record.seq
        is_new = seq > self._seqs.get(partition, 0)
        rules = (self._observers if is_new else self._row_observers)[accepted.ledger]
        for event in decode_events([accepted]):
            for rule in rules:
                rule.observe(event)
        if is_new:
            self._seqs[partition] = seq
        if not self._row_rules or seq <= self._compared.get(partition, 0):
            self._cursors[partition] = cursor_after(accepted)

    async def _make_rules(self, consumption: Consumption, acked: Collection[str]) -> None:
        """Read the topics beside the ledgers, and make the rules of the second pass."""
        self._report_line("reading commands, dead letters and events")
        installation, before, kept = self._installation, self._before, self.kept
        inputs = await read_inputs(installation, consumption, before.topics)
        check_acked(self._report, acked, inputs)
        self._report.counts["commands"] = len(inputs.commands)
        self._report.counts["undecodable"] = len(inputs.undecodable)
        lanes = range(installation.partitions)
        admission_seqs = {n: consumption.last_seq_read("placement", "admission", n) for n in lanes}
        placement_seqs = {n: consumption.last_seq_read("admission", "placement", n) for n in lanes}
        bounds = Bounds(dict(consumption.seqs))
        removed = await read_removed(installation.log, LOSSY, installation.partitions, now_ms())
        self._count_removed(removed)
        published = await read_published(installation, consumption, before)
        dead = await read_dead_letters(installation)
        self._rules = [
            CommandAnswerRule(inputs.commands, bounds, placement_seqs, removed, kept),
            ArrayCancelRule(),
            PublishedEventRule(published, bounds, removed, kept=kept),
            DeadLetterRule(inputs.undecodable, dead, bounds, removed, kept=kept),
            JobLifecycleRule(admission_seqs, bounds, kept),
            TransferRule(bounds, kept),
            GpuCapacityRule(kept),
            ReleaseProofRule(),
            ReadyWorkerRule(inputs.ready, kept),
            LlmLifecycleRule(),
            BudgetRule(),
        ]
        self._topics = {**before.topics, **inputs.unread, **published.next}
        self._anchors = {**before.anchors, **anchors_of(inputs.last), **anchors_of(published.last)}
        if self._conn is not None:
            await self._make_row_rules(self._conn, consumption)

    async def _make_row_rules(self, conn: Connection, consumption: Consumption) -> None:
        stored = await wait_for_rows(conn, consumption, self._installation.catch_up_s)
        for table, mark in stored.marks.items():
            if mark.row_count:
                self._report.counts[f"rows of {table} that have left"] = mark.row_count
        self._compared = dict(stored.seqs)
        self._row_rules = [
            ReadModelRule(stored, self.kept),
            LlmRowsRule(stored.rows, stored.seqs, self.kept),
            HistoryRule(
                StoredHistories(stored.histories, stored.marks.get(HISTORIES, Mark()).row_count),
                stored.seqs,
            ),
        ]

    def _count_removed(self, removed: Removed) -> None:
        """Count the records that retention removed before a run has read them."""
        for tp, begin in removed.begins.items():
            unread = begin - self._before.topics.get(tp, 0)
            if tp.topic in CUSTODIAN and unread > 0:
                self._report.counts[f"records of {tp.topic} that were removed unread"] += unread


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
