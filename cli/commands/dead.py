"""`berth dead`: inputs that could not be decoded, or led to an internal error."""

from __future__ import annotations

import asyncio
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.api.answers import api, await_answer, pages, report
from cli.api.http import Json, part
from cli.api.target import data_dir
from cli.app import ListGroup
from cli.errors import BadInput, CliError, NotFound
from cli.input.arguments import AsJson, Data, Limit, Reason
from cli.text.output import emit, lines, table
from cli.text.times import clock

if TYPE_CHECKING:
    from infra.supervisor.running import RunningStack

MOST = 100_000
RETRY_S = 10.0
"""How long a retry is awaited: a halted lane decides after its restart."""
LOOK_S = 0.1
STATES = {
    "retrying": "waits for its lane",
    "raised_again": "raised again",
    "not_retained": "not decided, bytes gone",
}
"""States of a quarantined input in words; the others are words."""
dead = typer.Typer(
    cls=ListGroup, help="Input that is undecodable or led to an error; without a verb: list."
)
DeadArgument = Annotated[str, typer.Argument(help="Id, or topic/partition/offset.", metavar="ID")]


@dead.command("list")
def list_(
    limit: Limit = 50,
    everything: Annotated[
        bool, typer.Option("--all", help="Also quarantined inputs that were retried or skipped.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List rejected records, and quarantined inputs on which no operator decided, newest first."""
    rows = pages(api(data), "/v1/dead", {"settled": "true" if everything else None}, limit)
    if as_json:
        emit(rows)
        return
    empty = "no rejected records" if everything else "no rejected records, no open inputs"
    table(("ID", "RECORD", "STATE", "REASON", "AT"), map(_cells, rows), empty)


@dead.command()
def show(dead_id: DeadArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show a rejected record with its bytes."""
    row = _dead_row(dead_id, data)
    value = asyncio.run(_bytes(_stack(data), row))
    if as_json:
        emit({**row, "size_bytes": len(value), "text": value.decode(errors="backslashreplace")})
        return
    table(("FIELD", "VALUE"), [*row.items(), ("size_bytes", len(value))])
    lines(["", value.decode(errors="backslashreplace")])


@dead.command()
def retry(
    dead_id: DeadArgument,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="File with the corrected bytes.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Decide a quarantined input again; send a rejected record again, or corrected."""
    row = _dead_row(dead_id, data)
    if _is_quarantined(row):
        if file is not None:
            raise BadInput("--file: a quarantined input is decided as it is")
        answer = _settled(row, "retry", {}, data)
        report(as_json, answer, f"{row['dead_id']}: {_outcome(str(row['dead_id']), data)}")
        return
    stack = _stack(data)
    value = _read(file) if file else asyncio.run(_bytes(stack, row))
    offset = asyncio.run(_send(stack, row, value))
    result = {"topic": row["topic"], "partition": row["partition"], "offset": offset}
    report(as_json, result, f"{row['dead_id']}: sent to {row['topic']}/{row['partition']}/{offset}")


@dead.command()
def skip(dead_id: DeadArgument, reason: Reason, as_json: AsJson = False, data: Data = None) -> None:
    """Close a quarantined input: it is never decided."""
    row = _dead_row(dead_id, data)
    if not _is_quarantined(row):
        raise BadInput(f"{dead_id}: was rejected; only a quarantined input is skipped")
    answer = _settled(row, "skip", {"reason": reason}, data)
    report(as_json, answer, f"{row['dead_id']}: skipped")


def _settled(row: Json, verb: str, body: Json, data: Path | None) -> Json:
    client = api(data)
    return await_answer(client, client.post(f"/v1/dead/{part(str(row['dead_id']))}/{verb}", body))


def _outcome(dead_id: str, data: Path | None) -> str:
    """Return what became of a retry. Raises CliError if its input was not decided."""
    client = api(data)
    ends_s = time.monotonic() + RETRY_S
    while True:
        row = client.get(f"/v1/dead/{part(dead_id)}")
        if row["settled"] or time.monotonic() > ends_s:
            break
        time.sleep(LOOK_S)
    if row["state"] == "raised_again":
        raise CliError(f"{dead_id}: raised again; `berth dead list` has it under another id")
    if row["state"] == "not_retained":
        raise CliError(f"{dead_id}: not decided, its bytes are no longer retained: send it again")
    return "retried" if row["settled"] else "to be retried: its lane has not decided yet"


def _cells(row: Json) -> tuple[object, ...]:
    state = str(row["state"])
    shown = STATES.get(state, state)
    if row["decision_reason"]:
        shown = f"{shown}: {row['decision_reason']}"
    return row["dead_id"], _place(row), shown, row["reason"], clock(row["at"])


def _is_quarantined(row: Json) -> bool:
    return row["state"] != "rejected"


def _dead_row(dead_id: str, data: Path | None) -> Json:
    """Return the row of a dead letter, by its id or by where the record is."""
    client = api(data)
    try:
        return client.get(f"/v1/dead/{part(dead_id)}")
    except NotFound:
        for row in pages(client, "/v1/dead", {"settled": "true"}, MOST):
            if dead_id == _place(row):
                return row
    raise NotFound(f"no such dead letter: {dead_id}; `berth dead list --all` shows all")


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
    """Return the bytes of a rejected record, or of what was quarantined of a record.

    Raises NotFound if they are no longer retained.
    """
    from shared.bus.archive.opening import with_archive
    from shared.bus.logs.kafka import KafkaLog
    from shared.bus.logs.log import fetch
    from shared.bus.quarantine.parts import find_bytes
    from shared.ledger.errors import TailLost
    from shared.ledger.partition import TP

    log = with_archive(KafkaLog(stack.connection("verify"), client="berth-dead"), stack.archive)
    place, offset = TP(str(row["topic"]), int(str(row["partition"]))), int(str(row["log_offset"]))
    await log.start()
    try:
        entries = await fetch(log, place, offset, 1, 5.0)
    except TailLost:
        entries = []
    finally:
        await log.stop()
    value = (entries[0].value or b"") if entries and entries[0].offset == offset else None
    if value is not None and hashlib.sha256(value).hexdigest() != row["sha256"]:
        value = find_bytes(place, offset, value, str(row["message_id"]), str(row["sha256"]))
    if value is None:
        raise NotFound(f"the bytes at {_place(row)} are no longer retained")
    return value


async def _send(stack: RunningStack, row: Json, value: bytes) -> int:
    from shared.bus.logs.producer import TopicProducer

    async with TopicProducer(stack.connection("operator")) as producer:
        return await producer.send(str(row["topic"]), int(str(row["partition"])), value)
