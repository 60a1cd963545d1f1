"""`berth why`, `trace`, `events`: what was decided, and because of what."""

from __future__ import annotations

import json
from typing import Annotated, cast

import typer

from cli.arguments import AsJson, Data
from cli.calls import api, items
from cli.errors import Unreachable
from cli.http_api import Json, part
from cli.job_commands import JobArgument
from cli.output import emit, lines, table
from cli.times import clock, span
from cli.why_words import deciding, phase, words


def why(job: JobArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Why a job waits, or waited: each reason with its numbers, from when until when.

    And where it stands in line now, or what decided where it was placed.
    """
    found = api(data).get(f"/v1/jobs/{part(job)}/why")
    if as_json:
        emit(found)
        return
    table(("SINCE", "UNTIL", "FOR", "PHASE", "WHY"), map(_period, items(found)), "no history yet")
    lines(deciding(found.get("line"), found.get("placing")))


def _period(row: Json) -> tuple[object, ...]:
    since, until, type_ = cast("int", row["at"]), row["until"], str(row["type"])
    lasted = span(until - since) if isinstance(until, int) else "-"
    facts = cast("Json", row["data"])
    return clock(since), clock(until), lasted, phase(type_), words(type_, facts)


def trace(job: JobArgument, as_json: AsJson = False, data: Data = None) -> None:
    """A job's start as a waterfall, with what was decided later."""
    found = api(data).get(f"/v1/jobs/{part(job)}/trace")
    if as_json:
        emit(found)
        return
    from shared.telemetry.traced import spans_from_json
    from shared.telemetry.waterfall import waterfall

    lines(waterfall(spans_from_json(cast("list[object]", found["spans"]))))


def events(
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on; without it, end when all is told.")
    ] = False,
    types: Annotated[str, typer.Option(help="Wire names, by commas.")] = "",
    subject: Annotated[str, typer.Option(help="Of one job, node, ... alone.")] = "",
    since: Annotated[str, typer.Option(help="`start`, or an event's place.")] = "",
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Accepted events as they happen, or those so far; with --json one CloudEvent per line."""
    start = since or ("" if follow else "start")
    client = api(data)
    query = {"types": types, "subject": subject, "since": start}
    found: list[object] = []
    for name, text in client.stream("/v1/events", query, alive=True):
        if name == "alive":
            if not follow:
                break
        elif name == "end":
            raise Unreachable(f"the stream ended: {json.loads(text).get('reason')}")
        elif as_json and not follow:
            found.append(json.loads(text))
        else:
            lines([text if as_json else _event(json.loads(text))])
    if as_json and not follow:
        emit(found)


def _event(event: Json) -> str:
    at, facts = str(event.get("time", ""))[11:23], cast("Json", event.get("data") or {})
    said = words(str(event.get("type")), facts)
    pool, subject = event.get("pool", ""), event.get("subject", "")
    told = said if said != "-" else ""
    return f"{at}  {event.get('type'):<28} {subject}  {pool}  {told}".rstrip()
