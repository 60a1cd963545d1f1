"""`berth llm requests`: the requests at LLM endpoints, with the ids for `berth llm why`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.api.answers import api, pages
from cli.api.http import Json
from cli.input.arguments import AsJson, Data, Limit
from cli.text.output import emit, table
from cli.text.times import clock, span

State = Literal["queued", "running", "finished", "rejected"]

HEADS = ("REQUEST", "ARRIVED", "TENANT", "APPLICATION", "MODEL", "STATE", "WAITED", "TOKENS", "WHY")


def requests(
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Filter by endpoint.")] = None,
    application: Annotated[str | None, typer.Option(help="Filter by application.")] = None,
    user: Annotated[str | None, typer.Option(help="Filter by user.")] = None,
    state: Annotated[State | None, typer.Option(help="Filter by state.")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List requests, newest first; `berth llm why REQUEST` explains one."""
    query: dict[str, object] = {
        "tenant": tenant,
        "endpoint": endpoint,
        "application": application,
        "user": user,
        "state": state,
    }
    rows = pages(api(data), "/v1/llm/requests", query, limit)
    if as_json:
        emit(rows)
        return
    table(HEADS, map(_cells, rows), "no requests; those that ended are kept for 30 days")


def _cells(row: Json) -> tuple[object, ...]:
    waited = span(row["waited_ms"]) if row["started_at"] else None
    tokens = f"{row['prompt_tokens']}+{row['output_tokens']}"
    names = ("tenant", "application")
    return (
        row["request_id"],
        clock(row["queued_at"]),
        *(row[name] for name in names),
        row["model"] or row["endpoint"],
        row["state"],
        waited,
        tokens,
        row["reason"] or row["outcome"],
    )
