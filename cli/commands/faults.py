"""`berth faults`: list slow workers, dismiss suspicions and approve plans; `berth why-slow`."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.answers import api, await_answer, items, pages, report
from cli.api.http import Json, part, pool_field
from cli.api.ids import job_id
from cli.app import ListGroup
from cli.commands.jobs import JobArgument
from cli.input.arguments import AsJson, Data, Limit, OnlyPool, PoolOfObject, Reason
from cli.text.output import emit, lines, report_line, table
from cli.text.slowness import slowness_lines, summary_row
from cli.text.times import clock, now_ms

faults = typer.Typer(cls=ListGroup, help="Slow workers; without a verb: list.")
FaultArgument = Annotated[str, typer.Argument(help="Fault id.", metavar="FAULT")]


@faults.command("list")
def list_(
    pool: OnlyPool = None,
    node: Annotated[str | None, typer.Option(help="Filter by node.")] = None,
    state: Annotated[
        str | None,
        typer.Option(help="Filter by state: suspected, cleared, dismissed or false_alarm."),
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List suspected slow workers and jobs and the health of their nodes, newest first.

    A job that is slower than before, of which no worker is slower than the others, has no node.
    """
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
        fault["node_id"] or "-",
        f"{fault['slowdown']:.2f}",
        fault["state"],
        fault["reason"],
        "-" if health is None else f"{health:.2f}",
        clock(fault["suspected_at"]),
        clock(fault["closed_at"]),
    )


@faults.command()
def summary(pool: OnlyPool = None, as_json: AsJson = False, data: Data = None) -> None:
    """Show per pool who applies plans, the breaker, and what slow workers cost.

    GPU-hours lost and the cost of migrations are measured; those avoided are an estimate, by the
    durations of earlier faults.
    """
    rows = items(api(data).get("/v1/faults/summary", {"pool": pool}))
    if as_json:
        emit(rows)
        return
    columns = ("POOL", "MITIGATION", "BREAKER", "FAULTS", "OPEN", "FALSE ALARMS", "STRICTNESS")
    hours = ("GPU-H LOST", "GPU-H COST", "GPU-H AVOIDED")
    table((*columns, *hours), map(summary_row, rows), "no pools")
    if any(row["open"] for row in rows):
        report_line("GPU-hours are those of faults that are over: open ones are not in them yet")


@faults.command()
def dismiss(
    fault: FaultArgument,
    false_alarm: Annotated[
        bool, typer.Option("--false-alarm", help="The worker was healthy.")
    ] = False,
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Dismiss a suspicion; its worker is not suspected again."""
    client, verb = api(data), "false-alarm" if false_alarm else "dismiss"
    body: Json = {"reason": reason, **pool_field(pool)}
    answer = await_answer(client, client.post(f"/v1/faults/{part(fault)}/{verb}", body))
    report(as_json, answer, f"{fault}: dismissed")


@faults.command()
def approve(
    plan: Annotated[str, typer.Argument(help="Plan id, as `berth why-slow` shows it.")],
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Approve a plan of Berth, or say that you did what it advises for the training framework."""
    client = api(data)
    body: Json = {"reason": reason, **pool_field(pool)}
    answer = await_answer(client, client.post(f"/v1/faults/plans/{part(plan)}/approve", body))
    report(as_json, answer, f"{plan}: approved")


def why_slow(job: JobArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Explain why a job is or was slow: since when, by how much, which worker, and what was done.

    It is slow as a whole where its iterations take longer than before per token or sample, and a
    worker of it where its own work takes longer than that of its peers.
    """
    client = api(data)
    job = job_id(client, job)
    history = client.get(f"/v1/jobs/{part(job)}/timeline")
    kinds = ("fault.", "mitigation.")
    rows = [row for row in items(history) if str(row["type"]).startswith(kinds)]
    if as_json:
        emit({"job_id": job, "items": rows})
        return
    lines(slowness_lines(items(history), now_ms()))
