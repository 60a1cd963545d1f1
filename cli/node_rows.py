"""Text of nodes: the row of each, its state, and the nodes that take no job now."""

from __future__ import annotations

from typing import cast

from cli.answers import pages
from cli.errors import CliError
from cli.http_api import Api, Json
from cli.times import clock, span

COLUMNS = ("NODE", "POOL", "TYPE", "GPUS", "USED", "STATE", "SILENT", "LOST AFTER", "JOINED")
MOST = 100_000
SHOWN = 4
"""Nodes that a hint names."""


def node_row(node: Json) -> tuple[object, ...]:
    used = sum(cast("list[int]", node["used_milli"])) / 1000
    return (
        node["node_id"],
        node["pool"],
        node["gpu_type"],
        node["gpus"],
        used,
        state_of(node),
        seconds(node["silent_ms"]) if node["silent_ms"] else "",
        seconds(node["lost_after_ms"]),
        clock(node["joined_at"]),
    )


def seconds(milliseconds: object) -> str:
    """Return a time that a node may be silent; no limit where its workers are kept."""
    return "never" if milliseconds is None else f"{int(cast('int', milliseconds)) // 1000} s"


def state_of(node: Json) -> str:
    """Return the state in words, worst first; executors refuse a node that was revoked."""
    if not node["alive"]:
        return "declared lost" if node["state"] == "declared" else f"lost ({node['reason']})"
    if node.get("identity") in ("revoked", "expired", "pending"):
        return f"{node['identity']}, suspected" if is_silent(node) else str(node["identity"])
    if is_silent(node):
        return "suspected"
    if node["draining"]:
        return "draining"
    health = cast("float", node["health"])
    slow = f", health {health:.2f}" if health < 1 else ""
    return ("cordoned" if node["cordoned"] else "ready") + slow


def is_silent(node: Json) -> bool:
    return node["state"] == "suspected"


def find_node(client: Api, node_id: str) -> Json | None:
    """Return the row of a node, also of one that is lost."""
    rows = pages(client, "/v1/nodes", {}, MOST)
    return next((row for row in rows if row["node_id"] == node_id), None)


def pending_lines(client: Api, pool: str | None) -> list[str]:
    """Return a hint about nodes that wait for an approval, which operators alone may give."""
    try:
        rows = pages(client, "/v1/enrolments", {}, MOST)
    except CliError:
        return []
    names = [
        str(row["node_id"])
        for row in rows
        if row["state"] == "pending" and pool in (None, row["pool"])
    ]
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [
        f"pending: {', '.join(names[:SHOWN])}{more}; `berth nodes approve NODE` lets a node work"
    ]


def away_lines(client: Api, pool: object) -> list[str]:
    """Return one line per node of the pool that is silent or lost, the latest first."""
    rows = pages(client, "/v1/nodes", {"pool": pool}, MOST)
    away = sorted(
        (row for row in rows if is_silent(row) or not row["alive"]),
        key=lambda row: -cast("int", row["lost_at"] or row["suspected_at"]),
    )
    lines = [_away(row) for row in away[:SHOWN]]
    more = len(away) - SHOWN
    return [*lines, f"{more} more nodes are silent or lost: `berth nodes`"] if more > 0 else lines


def _away(node: Json) -> str:
    name = f"node {node['node_id']} ({node['gpus']} GPUs)"
    if not node["alive"]:
        return f"{name} is {state_of(node)} since {clock(node['lost_at'])}: no job starts there"
    return f"{name} is silent for {span(node['silent_ms'])}: no job starts there"
