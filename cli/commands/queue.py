"""`berth queue`: the waiting jobs of the pools."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.answers import api, items
from cli.input.arguments import AsJson, Data, OnlyPool
from cli.text.output import emit, table
from cli.text.times import clock


def queue(
    pool: OnlyPool = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of rows.")] = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List waiting jobs in queue order."""
    rows = items(api(data).get("/v1/queue", {"pool": pool, "limit": limit}))
    if as_json:
        emit(rows)
        return
    columns = ("POSITION", "JOB", "NAME", "TENANT", "GPUS", "HELD BY", "SHORT", "SINCE")
    names = ("position", "job_id", "name", "tenant", "gpus", "held_reason", "short_gpus")
    cells = ((*(row[name] for name in names), clock(row["waiting_since"])) for row in rows)
    table(columns, cells, "no jobs waiting")
