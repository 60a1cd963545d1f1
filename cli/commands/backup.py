"""`berth backup`, `berth restore`: save the log of a stack and restore it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.api.answers import report
from cli.api.target import data_dir
from cli.commands.ledgers import archived_stack
from cli.errors import BadInput, Refused
from cli.input.arguments import AsJson, Data
from cli.text.output import report_line

if TYPE_CHECKING:
    from infra.supervisor.running import RunningStack
    from shared.backup.files import BackupManifest
    from shared.bus.archive.archive import Archive
    from shared.process.connection import Connection


def backup(
    folder: Annotated[Path, typer.Argument(help="New or empty directory.")],
    tail: Annotated[
        bool,
        typer.Option("--tail", help="Only what the archive does not have; a restore needs both."),
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Back up ledgers, inputs and submissions of a running stack."""
    from infra.supervisor.running import load
    from shared.backup.files import BadBackup

    stack = archived_stack(data) if tail else load(data_dir(data))
    try:
        manifest = asyncio.run(_save(stack, folder, tail))
    except BadBackup as error:
        raise Refused(str(error)) from None
    partitions = len(manifest.parts)
    result = {"folder": str(folder), "records": manifest.records, "partitions": partitions}
    text = f"{manifest.records} records of {partitions} partitions in {folder}"
    if tail:
        result["archived"] = manifest.archived
        text += f"; {manifest.archived} are only in {stack.archive}"
    report(as_json, result, text)


def restore(
    folder: Annotated[Path, typer.Argument(help="Directory of a backup.")],
    data: Annotated[Path | None, typer.Option(help="New data directory of `berth up`.")] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="Data directory of a stack whose broker runs, empty, without services."),
    ] = None,
    archive: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|s3://...", help="Of `berth backup --tail`: the archive of that stack."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Restore a backup into a new data directory; start it with `berth up`.

    With --into the records go into the Kafka of containers, of a cluster, or of your own, in which
    the step `topics` has made the topics.
    """
    from shared.backup.files import BadBackup, open_backup
    from shared.ledger.errors import ArchiveUnreachable, BadArchive

    if (data is None) == (into is None):
        raise BadInput("either --data or --into is needed")
    if data is not None and data.exists() and any(data.iterdir()):
        raise Refused(f"{data}: directory is not empty; choose a new one")
    try:
        manifest = open_backup(folder)
    except BadBackup as error:
        raise BadInput(str(error)) from None
    stack = None if into is None else _running(into, manifest)
    records = manifest.records + manifest.archived
    source = _opened(archive, manifest)
    if not as_json:
        report_line(f"restoring {records} records")
    try:
        if stack is not None:
            _load(stack, folder, manifest.tenants, source)
        elif data is not None:
            _restored(folder, data, manifest, source)
    except (BadBackup, BadArchive, ArchiveUnreachable) as error:
        raise Refused(str(error)) from None
    result = {"data": str(data or into), "records": records}
    start = f"start it with `berth up --broker kafka --data {data}`"
    report(as_json, result, f"restored; {start if data else 'start the services'}")


def _running(data: Path, manifest: BackupManifest) -> RunningStack:
    """Return the stack whose broker gets the records. Raises BadInput for one that cannot."""
    from infra.supervisor.running import load

    stack = load(data)
    if not stack.durable:
        raise BadInput("--into: the embedded broker keeps its log in memory")
    if stack.partitions != manifest.partitions:
        raise BadInput(
            f"--into: {stack.partitions} partitions; the backup has {manifest.partitions}, and a"
            " pool keeps its lane"
        )
    return stack


def _opened(archive: str, manifest: BackupManifest) -> Archive | None:
    """Return the archive that the tails of a backup need, None for a whole one. Raises BadInput."""
    from shared.backup.files import BadBackup
    from shared.backup.tails import check_archive
    from shared.bus.archive.archive import Archive
    from shared.bus.archive.opening import open_store
    from shared.ledger.errors import ArchiveUnreachable

    if not manifest.archived:
        return None
    if not archive:
        raise BadInput("the backup has only tails: `--archive` names the archive of its stack")
    try:
        opened = Archive(open_store(archive))
        check_archive(opened, manifest)
    except (BadBackup, ArchiveUnreachable) as error:
        raise BadInput(f"--archive: {error}") from None
    return opened


async def _save(stack: RunningStack, folder: Path, tail: bool) -> BackupManifest:
    from cli.stack.archived import archived_chains
    from shared.backup.save import save, saved_topics
    from shared.bus.archive.opening import with_archive
    from shared.bus.logs.kafka import KafkaLog

    log = with_archive(KafkaLog(stack.connection("verify"), client="berth-backup"), stack.archive)
    topics = saved_topics(stack.partitions, await _tenants(stack))
    chains = await asyncio.to_thread(archived_chains, stack) if tail else {}
    return await save(log, topics, stack.partitions, folder, chains)


async def _tenants(stack: RunningStack) -> list[str]:
    """Return every tenant ever registered, from the ledger: Postgres may be unavailable."""
    from shared.bus.archive.opening import with_archive
    from shared.bus.hosting.access import read_access
    from shared.bus.logs.kafka import KafkaLog

    view = await read_access(
        with_archive(KafkaLog(stack.connection("verify"), client="berth-backup"), stack.archive)
    )
    return sorted(view.tenants)


def _restored(folder: Path, data: Path, manifest: BackupManifest, archive: Archive | None) -> None:
    """Copy the records into a broker that runs without services."""
    from infra.supervisor import supervise
    from infra.supervisor.stack import STEPS

    topics = tuple(step for step in STEPS if step.name == "topics")
    options = supervise.StackOptions(
        data_dir=data, broker="kafka", partitions=manifest.partitions, services=(), steps=topics
    )
    stack = supervise.up(options)
    try:
        _load(stack, folder, manifest.tenants, archive)
    finally:
        supervise.down(data)


def _load(stack: RunningStack, folder: Path, tenants: list[str], archive: Archive | None) -> None:
    from cli.stack.bring_up import make_topics
    from infra.broker.topics import connect
    from infra.security.acls import restorer
    from infra.security.rights import RESTORE

    make_topics(stack, tenants)
    admin = connect(stack.connection("admin"))
    try:
        with restorer(admin) as password:
            writer = replace(stack.connection("admin"), user=RESTORE, password=password)
            # Wait until the broker lets the new user in: the copy does not.
            connect(writer).close()
            asyncio.run(_copy(writer, folder, archive))
    finally:
        admin.close()


async def _copy(writer: Connection, folder: Path, archive: Archive | None) -> None:
    from shared.backup.load import load
    from shared.backup.writer import KafkaRestorer
    from shared.bus.logs.kafka import KafkaLog

    async with KafkaRestorer(writer) as restorer:
        await load(folder, KafkaLog(writer, client="berth-restore"), restorer, archive)
