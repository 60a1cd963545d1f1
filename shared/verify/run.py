"""`berth verify`: reads everything from offset 0 and judges it by every rule."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from asyncpg import Connection

from shared.contracts.topics import INPUTS
from shared.ledger.errors import ProtocolViolation
from shared.ledger.reader import Cursor
from shared.projections.ledger_events import decode_events
from shared.projections.source import LedgerPartition, ledger_partitions
from shared.verify import reading
from shared.verify.arrays import ArraysCancelled
from shared.verify.commands import CommandsAnswered, PoisonRejected
from shared.verify.events import EventsRepublished
from shared.verify.gpus import GpusHeld
from shared.verify.lives import JobsLive
from shared.verify.reading import InstallationLog
from shared.verify.readmodels import ReadModelsEqual, Stored, stored
from shared.verify.rules import Bounds, Rule, Violation
from shared.verify.workers import WorkersAccepted

Progress = Callable[[str], None]
READERS_MS = 200
CHAIN = "the chain of accepted records is whole"
ACKED = "what was acknowledged is in its topic"


@dataclass(slots=True)
class VerifyReport:
    """Green when `violations` is empty."""

    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rules: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.violations


async def verify(
    logs: InstallationLog,
    conn: Connection | None,
    progress: Progress = lambda _: None,
    *,
    acked: Collection[str] = (),
) -> VerifyReport:
    """Judges what lies in the logs now; without `conn` the read models are left out.

    `acked` are the ids of commands that somebody was told are taken: each must be in its topic.

    Two passes over the ledgers: the first finds how far each service has read its inputs, so that
    what is still on its way is no violation.
    """
    report = VerifyReport()
    try:
        consumption = await consumed(logs, report, progress)
    except ProtocolViolation as error:
        report.violations.append(Violation(CHAIN, "ledgers", str(error)))
        return report
    rules = await rules_for(logs, conn, consumption, report, progress, acked)
    progress("judging every event")
    async for batch in reading.ledgers(logs):
        for line in decode_events(batch):
            for rule in rules:
                rule.see(line)
    for rule in rules:
        report.rules.append(rule.name)
        report.violations.extend(rule.finish())
    return report


async def consumed(
    logs: InstallationLog, report: VerifyReport, progress: Progress
) -> reading.Consumption:
    """First pass: the reader rule over every ledger; raises when a chain is broken."""
    progress("reading every ledger")
    consumption, cursors = (
        reading.Consumption(),
        dict.fromkeys(ledger_partitions(logs.partitions), Cursor()),
    )
    report.rules.append(CHAIN)
    async for batch in reading.ledgers(logs):
        for accepted in batch:
            place = (accepted.ledger, accepted.partition)
            count(report, place, accepted.record.at < cursors[place].at, accepted.record.at)
            cursors[place] = reading.cursor_after(accepted)
            report.counts["events"] += consumption.saw(accepted)
        report.counts["records"] += len(batch)
    for place, cursor in cursors.items():
        check_inputs(report, place, cursor)
        consumption.note(*place, cursor)
    return consumption


def count(report: VerifyReport, place: LedgerPartition, backwards: bool, at: int) -> None:
    if backwards:
        spot = f"{place[0]}/{place[1]}"
        report.violations.append(Violation(CHAIN, spot, f"time went back to {at}"))


def check_inputs(report: VerifyReport, place: LedgerPartition, cursor: Cursor) -> None:
    """A ledger may read only what its service is declared to read."""
    known = {f"{topic}-{place[1]}" for topic in INPUTS[place[0]]} | {"access-0"}
    for key in cursor.inputs.keys() - known:
        report.violations.append(Violation(CHAIN, f"{place[0]}/{place[1]}", f"reads {key}"))


def check_acked(report: VerifyReport, acked: Collection[str], asks: reading.Asks) -> None:
    if acked:
        report.rules.append(ACKED)
    for command_id in acked:
        if command_id not in asks.asked:
            report.violations.append(Violation(ACKED, command_id, "was acknowledged and is lost"))


async def rules_for(
    logs: InstallationLog,
    conn: Connection | None,
    consumption: reading.Consumption,
    report: VerifyReport,
    progress: Progress,
    acked: Collection[str],
) -> list[Rule]:
    progress("reading commands, dead letters and events")
    asks = await reading.asks(logs, consumption)
    check_acked(report, acked, asks)
    report.counts["commands"] = len(asks.asked)
    report.counts["undecodable"] = len(asks.poison)
    read = {
        lane: consumption.seq_read("placement", "admission", lane)
        for lane in range(logs.partitions)
    }
    told = {
        lane: consumption.seq_read("admission", "placement", lane)
        for lane in range(logs.partitions)
    }
    bounds = Bounds(dict(consumption.seqs))
    rules: list[Rule] = [
        CommandsAnswered(asks.asked, bounds, told),
        ArraysCancelled(),
        EventsRepublished(*await reading.published(logs, consumption), bounds),
        PoisonRejected(asks.poison, await reading.dead_letters(logs), bounds),
        JobsLive(read, bounds),
        GpusHeld(),
        WorkersAccepted(asks.ready),
    ]
    if conn is not None:
        rules.append(ReadModelsEqual(await caught_up(conn, consumption, logs.patience_s)))
    return rules


async def caught_up(
    conn: Connection, consumption: reading.Consumption, patience_s: float
) -> Stored:
    """Rows of a projector that has seen all that this run has seen, or its state after a while."""
    found = await stored(conn)
    for _ in range(int(patience_s * 1000 / READERS_MS)):
        if all(found.upto.get(p, 0) >= seq for p, seq in consumption.seqs.items()):
            break
        await asyncio.sleep(READERS_MS / 1000)
        found = await stored(conn)
    return found
