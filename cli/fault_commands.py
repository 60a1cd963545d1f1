"""`berth faults`: list slow workers and dismiss suspicions."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.answers import api, await_answer, pages, report
from cli.arguments import AsJson, Data
from cli.http_api import Json, part
from cli.output import emit, table
from cli.times import clock

faults = typer.Typer(invoke_without_command=True, help="Slow workers: list, dismiss; alone: list.")
FaultArgument = Annotated[str, typer.Argument(help="Fault id.", metavar="FAULT")]


@faults.callback()
def list_without_verb(context: typer.Context, as_json: AsJson = False, data: Data = None) -> None:
    """List them, without a verb."""
    if context.invoked_subcommand is None:
        list_(as_json=as_json, data=data)


@faults.command("list")
def list_(
    pool: Annotated[str | None, typer.Option(help="Filter by pool.")] = None,
    node: Annotated[str | None, typer.Option(help="Filter by node.")] = None,
    state: Annotated[
        str | None,
        typer.Option(help="Filter by state: suspected, cleared, dismissed or false_alarm."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of rows.")] = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List suspected slow workers and the health of their nodes, newest first."""
    rows = pages(api(data), "/v1/faults", {"pool": pool, "node": node, "state": state}, limit)
    if as_json:
        emit(rows)
        return
    columns = ("FAULT", "NODE", "SLOWDOWN", "STATE", "WHY", "HEALTH", "SINCE", "UNTIL")
    table(columns, map(_row, rows), "no slow workers")


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
    reason: Annotated[str, typer.Option(help="Reason, recorded in the audit log.")] = "",
    pool: Annotated[
        str | None, typer.Option(help="Pool; needed while the read models are unavailable.")
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Dismiss a suspicion; its worker is not suspected again."""
    client, verb = api(data), "false-alarm" if false_alarm else "dismiss"
    body: Json = {"reason": reason, **({"pool": pool} if pool else {})}
    answer = await_answer(client, client.post(f"/v1/faults/{part(fault)}/{verb}", body))
    report(as_json, answer, f"{fault}: {verb} accepted")
