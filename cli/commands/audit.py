"""`berth audit`: the audit log of commands and refused requests."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.answers import api, pages
from cli.input.arguments import AsJson, Data, Limit
from cli.text.output import emit, table
from cli.text.times import clock


def audit(
    principal: Annotated[
        str | None, typer.Option(help="Filter by principal, such as key:NAME or oidc:SUB.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(help="Filter by command type, such as key.create.v1.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(help="Filter by outcome: accepted, refused or requested.")
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List audited commands and refused requests, newest first."""
    query = {"principal": principal, "action": action, "outcome": outcome}
    rows = pages(api(data), "/v1/audit", query, limit)
    if as_json:
        emit(rows)
        return
    names = ("principal", "action", "object", "whose", "outcome", "reason", "requests")
    cells = ((clock(row["at"]), *(row[name] for name in names)) for row in rows)
    table(("AT", *(name.upper() for name in names)), cells, "no audit entries")
