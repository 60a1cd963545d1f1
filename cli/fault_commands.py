"""`berth faults`: workers that were slower than their peers, and what operators make of them."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.arguments import AsJson, Data
from cli.calls import answered, api, pages, report
from cli.http_api import Json, part
from cli.output import emit, table
from cli.times import clock

faults = typer.Typer(no_args_is_help=True, help="Slow workers: list, dismiss.")
FaultArgument = Annotated[str, typer.Argument(help="Its id in the list.", metavar="FAULT")]


@faults.command("list")
def list_(
    pool: Annotated[str | None, typer.Option(help="Of this pool alone.")] = None,
    node: Annotated[str | None, typer.Option(help="Of this node alone.")] = None,
    state: Annotated[
        str | None, typer.Option(help="suspected, cleared, dismissed or false_alarm")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Suspicions, the youngest first, and how healthy their nodes are taken to be."""
    rows = pages(api(data), "/v1/faults", {"pool": pool, "node": node, "state": state}, limit)
    if as_json:
        emit(rows)
        return
    columns = ("FAULT", "NODE", "SLOWDOWN", "STATE", "WHY", "HEALTH", "SINCE", "UNTIL")
    table(columns, map(_row, rows), "nobody was suspected")


def _row(fault: Json) -> tuple[object, ...]:
    health = fault["health"]
    return (
        fault["fault_id"],
        fault["node_id"],
        f"{fault['slowdown']:.2f}",
        fault["state"],
        fault["reason"],
        "-" if health is None else f"{health:.2f}",
        clock(fault["suspected_at"]),
        clock(fault["closed_at"]),
    )


@faults.command()
def dismiss(
    fault: FaultArgument,
    false_alarm: Annotated[
        bool, typer.Option("--false-alarm", help="The worker was healthy.")
    ] = False,
    reason: Annotated[str, typer.Option(help="For the record.")] = "",
    pool: Annotated[str | None, typer.Option(help="Its pool, while reads are away.")] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Do nothing about a suspicion; its worker is not suspected again."""
    client, verb = api(data), "false-alarm" if false_alarm else "dismiss"
    wish: Json = {"reason": reason, **({"pool": pool} if pool else {})}
    answer = answered(client, client.post(f"/v1/faults/{part(fault)}/{verb}", wish))
    report(as_json, answer, f"{fault}: {verb} done")
