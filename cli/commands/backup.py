"""`berth backup`, `berth restore`: save the log of a stack and restore it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.api.answers import report
from cli.api.target import data_dir
from cli.errors import BadInput, Refused
from cli.input.arguments import AsJson, Data
from cli.text.output import report_line

if TYPE_CHECKING:
    from infra.supervisor.running import RunningStack
    from shared.backup.files import BackupManifest
    from shared.process.connection import Connection


def backup(
    folder: Annotated[Path, typer.Argument(help="New or empty directory.")],
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Back up ledgers, inputs and submissions of a running stack."""
    from infra.supervisor.running import load
    from shared.backup.files import BadBackup

    try:
        manifest = asyncio.run(_save(load(data_dir(data)), folder))
    except BadBackup as error:
        raise Refused(str(error)) from None
    result = {"folder": str(folder), "records": manifest.records, "partitions": len(manifest.parts)}
    report(
        as_json,
        result,
        f"{manifest.records} records of {len(manifest.parts)} partitions in {folder}",
    )


def restore(
    folder: Annotated[Path, typer.Argument(help="Directory of a backup.")],
    data: Annotated[Path, typer.Option(help="New data directory.")],
    as_json: AsJson = False,
) -> None:
    """Restore a backup into a new data directory; start it with `berth up`."""
    from shared.backup.files import BadBackup, open_backup

    if data.exists() and any(data.iterdir()):
        raise Refused(f"{data}: directory is not empty; choose a new one")
    try:
        manifest = open_backup(folder)
    except BadBackup as error:
        raise BadInput(str(error)) from None
    if not as_json:
        report_line(f"restoring {manifest.records} records")
    try:
        _restored(folder, data, manifest)
    except BadBackup as error:
        raise Refused(str(error)) from None
    result = {"data": str(data), "records": manifest.records}
    report(as_json, result, f"restored; start it with `berth up --broker kafka --data {data}`")


async def _save(stack: RunningStack, folder: Path) -> BackupManifest:
    from shared.backup.save import save, saved_topics
    from shared.bus.archive.opening import with_archive
    from shared.bus.logs.kafka import KafkaLog

    log = with_archive(KafkaLog(stack.connection("verify"), client="berth-backup"), stack.archive)
    topics = saved_topics(stack.partitions, await _tenants(stack))
    return await save(log, topics, stack.partitions, folder)


async def _tenants(stack: RunningStack) -> list[str]:
    """Return every tenant ever registered, from the ledger: Postgres may be unavailable."""
    from shared.bus.archive.opening import with_archive
    from shared.bus.hosting.access import read_access
    from shared.bus.logs.kafka import KafkaLog

    view = await read_access(
        with_archive(KafkaLog(stack.connection("verify"), client="berth-backup"), stack.archive)
    )
    return sorted(view.tenants)


def _restored(folder: Path, data: Path, manifest: BackupManifest) -> None:
    """Copy the records into a broker that runs without services."""
    from infra.supervisor import supervise
    from infra.supervisor.stack import STEPS

    topics = tuple(step for step in STEPS if step.name == "topics")
    options = supervise.StackOptions(
        data_dir=data, broker="kafka", partitions=manifest.partitions, services=(), steps=topics
    )
    stack = supervise.up(options)
    try:
        _load(stack, folder, manifest.tenants)
    finally:
        supervise.down(data)


def _load(stack: RunningStack, folder: Path, tenants: list[str]) -> None:
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
            asyncio.run(_copy(writer, folder))
    finally:
        admin.close()


async def _copy(writer: Connection, folder: Path) -> None:
    from shared.backup.load import load
    from shared.backup.writer import KafkaRestorer
    from shared.bus.logs.kafka import KafkaLog

    async with KafkaRestorer(writer) as restorer:
        await load(folder, KafkaLog(writer, client="berth-restore"), restorer)
