"""`berth why`, `trace`, `events`: decisions and their reasons."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, cast

import typer

from cli.api.answers import api, items
from cli.api.http import Api, Json, StreamEvent, part
from cli.api.ids import job_id
from cli.commands.jobs import JobArgument
from cli.commands.node_hints import closed_lines, silent_lines
from cli.errors import Unreachable
from cli.input.arguments import AsJson, Data
from cli.text.failures import failure_lines, failure_of, planned_failure, refusal_lines
from cli.text.nodes import backend_text
from cli.text.output import emit, lines, report_line, table
from cli.text.phases import phase
from cli.text.progress import progress_lines
from cli.text.protections import deferral_lines
from cli.text.reasons import deciding, other_pool_lines, start_lines, words
from cli.text.slowness import open_suspicions
from cli.text.times import clock, span

EVENTS = "/v1/events"
FOR_NODES = ("no_capacity", "no_node_fits", "no_nodes", "disk_full")
"""Reasons of a wait that a node which is away may cause."""


def why(job: JobArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Explain why a job waits or waited: each reason with its numbers and its period.

    Also shows its position in the queue, or the terms of its placement.
    """
    client = api(data)
    job = job_id(client, job)
    history = client.get(f"/v1/jobs/{part(job)}/why")
    if as_json:
        emit(history)
        return
    none = empty_text(cast("str | None", history.get("archived")))
    table(("SINCE", "UNTIL", "FOR", "PHASE", "WHY"), map(_period, items(history)), none)
    lines(deciding(history.get("line"), history.get("placing")))
    if history.get("backend") == "virtual":
        lines([f"nodes: {backend_text('virtual')}"])
    lines(other_pool_lines(history.get("other_pools")))
    lines(start_lines(history.get("start"), history.get("as_of")))
    lines(deferral_lines(history.get("deferral"), history.get("as_of")))
    lines(_last_failure(items(history), job))
    lines(_refusal(items(history)))
    lines(_present_lines(client, job, items(history)))


def empty_text(archived: str | None) -> str:
    """Return why there are no periods; `archived` is the folder that the history has left for."""
    if archived is None:
        return "no history yet"
    return f"the history of this job has left the database; it is in {archived} of the archive"


def _present_lines(client: Api, job: str, rows: list[Json]) -> list[str]:
    """Return the progress and the silent nodes of a running job; the nodes away where it waits for
    GPUs or nodes; that it was meant to fail.
    """
    if not rows or rows[-1]["until"] is not None:
        return []
    if rows[-1]["type"] == "job.failed.v1":
        return planned_failure(client.get(f"/v1/jobs/{part(job)}"))
    runs = rows[-1]["type"] == "job.started.v1"
    if not runs and cast("Json", rows[-1]["data"]).get("reason") not in FOR_NODES:
        return []
    document = client.get(f"/v1/jobs/{part(job)}")
    if runs:
        silent = silent_lines(client, document["pool"], cast("list[str]", document["nodes"]))
        timeline = items(client.get(f"/v1/jobs/{part(job)}/timeline"))
        return [*progress_lines(document), *silent, *open_suspicions(timeline, job)]
    return closed_lines(client, document["pool"])


def _refusal(rows: list[Json]) -> list[str]:
    """Return what to do about a job that was refused."""
    if not rows or rows[-1]["type"] != "job.rejected.v1":
        return []
    return refusal_lines(cast("Json", rows[-1]["data"]).get("reason"))


def _last_failure(rows: list[Json], job: str) -> list[str]:
    """Return the last failure with its output, unless the job has run since."""
    for row in reversed(rows):
        if row["type"] in ("job.started.v1", "job.succeeded.v1"):
            break
        if failure := failure_of(cast("Json", row["data"])):
            return failure_lines(failure, job)
    return []


def _period(row: Json) -> tuple[object, ...]:
    since, until, type_ = cast("int", row["at"]), row["until"], str(row["type"])
    lasted = span(until - since) if isinstance(until, int) else "-"
    facts = cast("Json", row["data"])
    return clock(since), clock(until), lasted, phase(type_, facts), words(type_, facts)


def trace(job: JobArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Print the trace of a job as a waterfall."""
    client = api(data)
    document = client.get(f"/v1/jobs/{part(job_id(client, job))}/trace")
    if as_json:
        emit(document)
        return
    from shared.telemetry.traced import spans_from_json
    from shared.telemetry.waterfall import waterfall

    lines(waterfall(spans_from_json(cast("list[object]", document["spans"]))))


def events(
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Keep printing new events.")
    ] = False,
    types: Annotated[str, typer.Option(help="Event types, comma-separated.")] = "",
    subject: Annotated[str, typer.Option(help="Filter by subject, such as a job or node id.")] = "",
    since: Annotated[str, typer.Option(help="`start`, or an event position.")] = "",
    last: Annotated[
        int | None, typer.Option(min=1, help="Number of events, from the last; not with --follow.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Print events, the latest last; with --follow as they happen, with --json as CloudEvents.

    With --follow it goes on behind the last event after an outage of the gateway of up to a minute.
    """
    client = api(data)
    query = {"types": types, "subject": subject, "since": since or ("" if follow else "start")}
    if follow:
        for document in _documents(client.follow(EVENTS, query, report_line)):
            if as_json:
                emit(document)
            else:
                lines([_event(document)])
        return
    known = in_order(_documents(client.stream(EVENTS, query, alive=True)), last)
    if as_json:
        emit(known)
    else:
        lines(map(_event, known))


def _documents(stream: Iterable[StreamEvent]) -> Iterator[Json]:
    """Yield the events of a stream up to its first sign that no more are known."""
    for name, text, _ in stream:
        if name == "alive":
            return
        document = cast("Json", json.loads(text))
        if name == "end":
            raise Unreachable(f"the stream ended: {document.get('reason')}")
        yield document


def in_order(events: Iterable[Json], last: int | None) -> list[Json]:
    """Return events by their times, at most `last` of the latest.

    The stream has the ledgers one beside the other; events of one time stay in its order.
    """
    known = sorted(events, key=lambda event: str(event.get("time", "")))
    return known[-last:] if last is not None else known


def _event(event: Json) -> str:
    at, facts = str(event.get("time", ""))[11:23], cast("Json", event.get("data") or {})
    description = words(str(event.get("type")), facts)
    pool, subject = event.get("pool", ""), event.get("subject", "")
    text = description if description != "-" else ""
    return f"{at}  {event.get('type'):<28} {subject}  {pool}  {text}".rstrip()
