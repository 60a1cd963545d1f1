"""`berth policies`: the policies of this installation."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.input.arguments import AsJson
from cli.text.output import emit, table

PoolsAlone = Annotated[bool, typer.Option("--pools", help="Only those that a pool can have.")]


def policies(in_pools: PoolsAlone = False, as_json: AsJson = False) -> None:
    """List every policy: where it is set, its decisions and needs, and its source.

    A base policy orders the queue of a pool, and a scheduler decides more;
    one of your own package is listed too. `berth what-if` and `berth validate`
    simulate all of them.
    """
    from simulator.recorded import catalog

    rows = [row for row in catalog.policies() if row.pool_setting or not in_pools]
    if as_json:
        emit([row._asdict() for row in rows])
        return
    columns = ("POLICY", "POOL SETTING", "DECIDES", "NEEDS", "SOURCE")
    shown = (
        (row.name, row.pool_setting, ", ".join(row.decides), ", ".join(row.needs), row.source)
        for row in rows
    )
    table(columns, ([cell or "-" for cell in row] for row in shown))
