"""`berth ledgers`: what of the ledgers and their inputs is archived."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.api.answers import report
from cli.api.target import data_dir
from cli.errors import Refused
from cli.input.arguments import AsJson, Data
from cli.text.output import emit, report_line, table, working
from cli.text.times import clock

if TYPE_CHECKING:
    from cli.stack.archived import PartitionStatus
    from cli.stack.checkpoints import LaneCheckpoint
    from cli.stack.trimmed import TrimStep
    from infra.supervisor.running import RunningStack
    from shared.ledger.partition import TP
    from shared.process.progress import ReportLine

ledgers = typer.Typer(no_args_is_help=True, help="The archive of ledgers and their inputs.")
Topic = Annotated[
    list[str] | None, typer.Option("--topic", help="Only this topic; may be repeated.")
]
KEEP_H = 24.0
HOUR_MS = 3_600_000
TRIM_COLUMNS = ("PARTITION", "BEGIN", "TRIM TO", "END", "RECORDS", "BOUND")
CHECKPOINT_COLUMNS = ("LEDGER", "LANE", "SEQ", "FOLDED", "S")
COLUMNS = ("PARTITION", "BEGIN", "ARCHIVED", "CHECKED", "END", "ENTRIES", "BYTES", "LAST ENTRY")


@ledgers.command()
def status(topic: Topic = None, as_json: AsJson = False, data: Data = None) -> None:
    """Show per partition where its topic begins and ends, and what is archived and checked."""
    from cli.stack.archived import statuses

    stack = archived_stack(data)
    rows = asyncio.run(statuses(stack, chosen(stack, topic)))
    if as_json:
        emit({"archive": stack.archive, "partitions": [row.as_json() for row in rows]})
        return
    table(COLUMNS, map(_row, rows))


@ledgers.command()
def archive(topic: Topic = None, as_json: AsJson = False, data: Data = None) -> None:
    """Archive at once what the topics hold; services do so every few hours.

    The records up to the present end are archived: the records that a broker has acknowledged and
    not yet copied would be lost with it.
    """
    from cli.stack.archived import archive_now

    stack = archived_stack(data)
    entries = asyncio.run(archive_now(stack, chosen(stack, topic)))
    result = {"archive": stack.archive, "entries": entries}
    report(as_json, result, f"{entries} new entries in {stack.archive}")


@ledgers.command()
def trim(
    topic: Topic = None,
    keep: Annotated[
        float, typer.Option(min=0, help="Hours of which all records stay in the topics.")
    ] = KEEP_H,
    apply: Annotated[
        bool, typer.Option("--apply", help="Remove the records; else only show which.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Show what topics need not hold any more, and with --apply remove it from them.

    Only records go that were read back from the archive, that all services have used, and that are
    older than --keep. What is gone from a topic is only in the archive, and in backups.
    """
    from cli.stack import trimmed

    stack = archived_stack(data)
    tps = chosen(stack, topic)
    steps = asyncio.run(trimmed.plan_trim(stack, tps, round(keep * HOUR_MS), report_line))
    if apply:
        trimmed.trim(stack, steps)
    records = sum(step.records for step in steps)
    if as_json:
        rows = [step.as_json() for step in steps]
        emit({"applied": apply, "records": records, "partitions": rows})
        return
    table(TRIM_COLUMNS, map(_step, steps))
    if not apply:
        report_line(f"{records} records may go; nothing was removed: --apply does it")


@ledgers.command()
def checkpoint(
    service: Annotated[
        str, typer.Option(help="Only this service, by the BERTH_ variables of its container.")
    ] = "",
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Fold every ledger with this code beside the running services, before `berth restart`.

    After an upgrade that folds differently a service without it folds its ledger from 0.
    """
    with working("folding", as_json) as progress:
        done = _checkpoints_of_service(service, progress) if service else _all(data, progress)
    if as_json:
        emit([row.as_json() for row in done])
        return
    names = ("ledger", "partition", "seq", "records", "wall_s")
    table(CHECKPOINT_COLUMNS, ([row.as_json()[name] for name in names] for row in done))


def _all(data: Path | None, report_progress: ReportLine) -> list[LaneCheckpoint]:
    from cli.stack.checkpoints import checkpoint as make_checkpoints
    from infra.supervisor.running import load

    stack = load(data_dir(data))
    if not stack.durable:
        raise Refused("the embedded broker keeps its log in memory: there is nothing to fold later")
    return make_checkpoints(stack, report_progress)


def _checkpoints_of_service(service: str, report_progress: ReportLine) -> list[LaneCheckpoint]:
    import os

    from cli.stack.checkpoints import checkpoint_service
    from shared.process.settings import Settings, read_settings

    return checkpoint_service(service, read_settings(Settings, os.environ), report_progress)


def _step(step: TrimStep) -> tuple[object, ...]:
    partition = f"{step.topic}-{step.partition}"
    return partition, step.begin, step.trim_to, step.end, step.records, step.rule


def archived_stack(data: Path | None) -> RunningStack:
    """Return the stack. Raises Refused if it has no archive."""
    from infra.supervisor.running import load

    stack = load(data_dir(data))
    if not stack.durable:
        raise Refused(
            "the embedded broker keeps its log in memory, and cannot remove records of a topic: it"
            " has no archive, and its topics are not trimmed"
        )
    if not stack.archive:
        raise Refused(
            f"the stack in {stack.data_dir} has no archive; `berth up --archive FOLDER` gives it"
            " one"
        )
    return stack


def chosen(stack: RunningStack, topics: list[str] | None) -> list[TP]:
    """Return the partitions of these topics, of all if none is named. Raises BadInput."""
    from cli.errors import BadInput
    from shared.bus.archive.archiving import archived_partitions
    from shared.contracts.topics import ARCHIVED

    if unknown := sorted(set(topics or ()) - set(ARCHIVED)):
        raise BadInput(f"--topic {unknown[0]}: is not archived; these are: {', '.join(ARCHIVED)}")
    tps = archived_partitions(stack.partitions)
    return [tp for tp in tps if not topics or tp.topic in topics]


def _row(row: PartitionStatus) -> tuple[object, ...]:
    return (
        f"{row.topic}-{row.partition}",
        row.begin,
        row.archived,
        row.checked,
        row.end,
        row.entries,
        row.bytes,
        clock(row.last_entry_ms),
    )
