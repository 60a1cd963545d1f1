"""`berth nodes`, `queue`, `cordon`, `uncordon`, `drain`: nodes and queues of the pools."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.answers import api, await_answer, items, pages, report
from cli.arguments import AsJson, Data
from cli.enrolment_commands import (
    Limit,
    approve,
    list_identities,
    revoke,
    revoke_token,
    show,
    token,
    tokens,
)
from cli.errors import Refused
from cli.http_api import Json, part
from cli.node_rows import COLUMNS, find_node, node_row, pending_lines, state_of
from cli.output import emit, say, table
from cli.times import clock

NodeArgument = Annotated[str, typer.Argument(help="Node id.", metavar="NODE")]
Reason = Annotated[str, typer.Option(help="Reason, recorded in the audit log.")]
Pool = Annotated[
    str | None, typer.Option(help="Pool; needed while the read models are unavailable.")
]


OnlyPool = Annotated[str | None, typer.Option(help="Filter by pool.")]

nodes = typer.Typer(
    invoke_without_command=True,
    help="Nodes: list, show, lost, token, tokens, revoke-token, approve, revoke; alone: list.",
)
for _verb in (show, token, tokens, revoke_token, approve, revoke):
    nodes.command()(_verb)


@nodes.callback()
def list_without_verb(
    context: typer.Context,
    pool: OnlyPool = None,
    limit: Limit = 1000,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List nodes with their GPUs and GPU use, without a verb."""
    if context.invoked_subcommand is None:
        list_nodes(pool, limit, False, as_json, data)


@nodes.command("list")
def list_nodes(
    pool: OnlyPool = None,
    limit: Limit = 1000,
    enrolled: Annotated[
        bool, typer.Option("--enrolled", help="List identities, also of pending nodes.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List nodes with their GPUs and GPU use."""
    if enrolled:
        list_identities(api(data), limit, as_json)
        return
    client = api(data)
    rows = pages(client, "/v1/nodes", {"pool": pool}, limit)
    if as_json:
        emit(rows)
        return
    table(COLUMNS, map(node_row, rows), "no nodes")
    for line in pending_lines(client, pool):
        say(line)


@nodes.command()
def lost(
    node: NodeArgument,
    powered_off: Annotated[
        bool,
        typer.Option(
            "--powered-off",
            help="The machine is off: release its GPUs at once; refused while it is heard.",
        ),
    ] = False,
    reason: Reason = "",
    pool: Pool = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Give a node up: its jobs stop; its GPUs are released when nothing of it can be alive."""
    client = api(data)
    body: Json = {"powered_off": powered_off, "reason": reason, **({"pool": pool} if pool else {})}
    try:
        answer = await_answer(client, client.post(f"/v1/nodes/{part(node)}/lost", body))
    except Refused:
        if not (row := find_node(client, node)) or row["alive"]:
            raise
        known = {"node_id": node, "state": row["state"], "reason": row["reason"]}
        report(as_json, known, f"{node}: already {state_of(row)}")
        return
    report(as_json, answer, f"{node}: lost accepted")


def queue(
    pool: Annotated[str | None, typer.Option(help="Filter by pool.")] = None,
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


def cordon(
    node: NodeArgument,
    reason: Reason = "",
    pool: Pool = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Mark a node unschedulable."""
    _order("cordon", node, reason, pool, as_json, data)


def uncordon(
    node: NodeArgument, pool: Pool = None, as_json: AsJson = False, data: Data = None
) -> None:
    """Mark a node schedulable."""
    _order("uncordon", node, "", pool, as_json, data)


def drain(
    node: NodeArgument,
    reason: Reason = "",
    pool: Pool = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Cordon a node and move its jobs to other nodes; what cannot be moved is stopped and queued.

    `berth cordon NODE` lets running jobs finish there instead.
    """
    _order("drain", node, reason, pool, as_json, data)


def _order(verb: str, node: str, reason: str, pool: str | None, as_json: bool, data: Data) -> None:
    client = api(data)
    body: Json = {"reason": reason, **({"pool": pool} if pool else {})}
    answer = await_answer(client, client.post(f"/v1/nodes/{part(node)}/{verb}", body))
    report(as_json, answer, f"{node}: {verb} accepted")
