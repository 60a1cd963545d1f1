"""`berth nodes`, `queue`, `cordon`, `uncordon`, `drain`: what the pools look like, and changes."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from cli.arguments import AsJson, Data
from cli.calls import answered, api, items, pages, report
from cli.http_api import Json, part
from cli.output import emit, table
from cli.times import clock

NodeArgument = Annotated[str, typer.Argument(help="The node's id.", metavar="NODE")]
Reason = Annotated[str, typer.Option(help="For the record.")]
Pool = Annotated[str | None, typer.Option(help="Its pool, while reads are away.")]


def nodes(
    pool: Annotated[str | None, typer.Option(help="Of this pool alone.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 1000,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List nodes with their GPUs and how much of them is taken."""
    rows = pages(api(data), "/v1/nodes", {"pool": pool}, limit)
    if as_json:
        emit(rows)
        return
    columns = ("NODE", "POOL", "TYPE", "GPUS", "USED", "STATE", "JOINED")
    table(columns, map(_row, rows), "no nodes")


def _row(node: Json) -> tuple[object, ...]:
    used = sum(cast("list[int]", node["used_milli"])) / 1000
    return (
        node["node_id"],
        node["pool"],
        node["gpu_type"],
        node["gpus"],
        used,
        _state(node),
        clock(node["joined_at"]),
    )


def _state(node: Json) -> str:
    if not node["alive"]:
        return f"lost ({node['reason']})"
    if node["draining"]:
        return "draining"
    health = cast("float", node["health"])
    slow = f", health {health:.2f}" if health < 1 else ""
    return ("cordoned" if node["cordoned"] else "ready") + slow


def queue(
    pool: Annotated[str | None, typer.Option(help="Of this pool alone.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 50,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Jobs that wait for GPUs, in the order that priority advises."""
    rows = items(api(data).get("/v1/queue", {"pool": pool, "limit": limit}))
    if as_json:
        emit(rows)
        return
    columns = ("POSITION", "JOB", "NAME", "TENANT", "GPUS", "HELD BY", "SHORT", "SINCE")
    names = ("position", "job_id", "name", "tenant", "gpus", "held_reason", "short_gpus")
    found = ((*(row[name] for name in names), clock(row["waiting_since"])) for row in rows)
    table(columns, found, "nobody waits")


def cordon(
    node: NodeArgument,
    reason: Reason = "",
    pool: Pool = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Start nothing more on a node."""
    _order("cordon", node, reason, pool, as_json, data)


def uncordon(
    node: NodeArgument, pool: Pool = None, as_json: AsJson = False, data: Data = None
) -> None:
    """Use a cordoned or drained node again."""
    _order("uncordon", node, "", pool, as_json, data)


def drain(
    node: NodeArgument,
    reason: Reason = "",
    pool: Pool = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Cordon a node and move its jobs away."""
    _order("drain", node, reason, pool, as_json, data)


def _order(verb: str, node: str, reason: str, pool: str | None, as_json: bool, data: Data) -> None:
    client = api(data)
    wish: Json = {"reason": reason, **({"pool": pool} if pool else {})}
    answer = answered(client, client.post(f"/v1/nodes/{part(node)}/{verb}", wish))
    report(as_json, answer, f"{node}: {verb} done")
