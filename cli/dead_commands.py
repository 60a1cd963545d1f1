"""`berth dead`: inputs that could not be decoded, or led to an internal error."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.answers import api, await_answer, pages, report
from cli.arguments import AsJson, Data
from cli.errors import BadInput, NotFound
from cli.http_api import Json, part
from cli.output import emit, lines, table
from cli.target import data_dir
from cli.times import clock

if TYPE_CHECKING:
    from infra.supervisor.running import RunningStack

MOST = 100_000
dead = typer.Typer(
    invoke_without_command=True,
    help="Undecodable or defective input: list, show, retry, skip; alone: list.",
)
DeadArgument = Annotated[str, typer.Argument(help="Id, or topic/partition/offset.", metavar="ID")]


@dead.callback()
def list_without_verb(context: typer.Context, as_json: AsJson = False, data: Data = None) -> None:
    """List them, without a verb."""
    if context.invoked_subcommand is None:
        list_(as_json=as_json, data=data)


@dead.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows.")] = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List rejected records and inputs set aside, newest first."""
    rows = pages(api(data), "/v1/dead", {}, limit)
    if as_json:
        emit(rows)
        return
    cells = ((row["dead_id"], _place(row), row["reason"], clock(row["at"])) for row in rows)
    table(("ID", "WHERE", "WHY", "AT"), cells, "no rejected records")


@dead.command()
def show(letter: DeadArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show a rejected record with its bytes."""
    row = _letter(letter, data)
    value = asyncio.run(_bytes(_stack(data), row))
    if as_json:
        emit({**row, "size_bytes": len(value), "text": value.decode(errors="backslashreplace")})
        return
    table(("FIELD", "VALUE"), [*row.items(), ("size_bytes", len(value))])
    lines(["", value.decode(errors="backslashreplace")])


@dead.command()
def retry(
    letter: DeadArgument,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="File with the corrected bytes.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Decide an input that was set aside again; send a rejected record again, or corrected."""
    row = _letter(letter, data)
    if _is_aside(row):
        if file is not None:
            raise BadInput("--file: an input that was set aside is decided as it is")
        answer = _settled(row, "retry", {}, data)
        report(as_json, answer, f"{row['dead_id']}: is decided again")
        return
    stack = _stack(data)
    value = _read(file) if file else asyncio.run(_bytes(stack, row))
    offset = asyncio.run(_send(stack, row, value))
    result = {"topic": row["topic"], "partition": row["partition"], "offset": offset}
    report(as_json, result, f"sent to {row['topic']}/{row['partition']}/{offset}")


@dead.command()
def skip(
    letter: DeadArgument,
    reason: Annotated[str, typer.Option(help="Reason, recorded in the audit log.")],
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Close an input that was set aside: it is never decided."""
    row = _letter(letter, data)
    if not _is_aside(row):
        raise BadInput(f"{letter}: was rejected; only an input that was set aside is skipped")
    answer = _settled(row, "skip", {"reason": reason}, data)
    report(as_json, answer, f"{row['dead_id']}: closed")


def _settled(row: Json, verb: str, body: Json, data: Path | None) -> Json:
    client = api(data)
    return await_answer(client, client.post(f"/v1/dead/{part(str(row['dead_id']))}/{verb}", body))


def _is_aside(row: Json) -> bool:
    return str(row["reason"]).startswith("set aside: ")


def _letter(letter: str, data: Path | None) -> Json:
    for row in pages(api(data), "/v1/dead", {}, MOST):
        if letter in (row["dead_id"], _place(row)):
            return row
    raise NotFound(f"dead letter not found: {letter}")


def _place(row: Json) -> str:
    return f"{row['topic']}/{row['partition']}/{row['log_offset']}"


def _stack(data: Path | None) -> RunningStack:
    from infra.supervisor.running import load

    return load(data_dir(data))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


async def _bytes(stack: RunningStack, row: Json) -> bytes:
    """Return the bytes of a rejected record. Raises NotFound if they are no longer retained."""
    from shared.bus.kafka import KafkaLog
    from shared.bus.log import fetch
    from shared.ledger.errors import TailLost
    from shared.ledger.partition import TP

    log = KafkaLog(stack.connection("verify"), client="berth-dead")
    place, offset = TP(str(row["topic"]), int(str(row["partition"]))), int(str(row["log_offset"]))
    await log.start()
    try:
        entries = await fetch(log, place, offset, 1, 5.0)
    except TailLost:
        entries = []
    finally:
        await log.stop()
    value = (entries[0].value or b"") if entries and entries[0].offset == offset else None
    if value is None or hashlib.sha256(value).hexdigest() != row["sha256"]:
        raise NotFound(f"the bytes at {_place(row)} are no longer retained")
    return value


async def _send(stack: RunningStack, row: Json, value: bytes) -> int:
    from shared.bus.producer import TopicProducer

    async with TopicProducer(stack.connection("operator")) as producer:
        return await producer.send(str(row["topic"]), int(str(row["partition"])), value)
