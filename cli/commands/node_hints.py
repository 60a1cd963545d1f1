"""Lines that follow the answer on nodes or jobs: pending nodes, silent or lost nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from cli.api.answers import items, pages
from cli.api.http import Api, Json, part
from cli.errors import CliError, Refused
from cli.text.nodes import has_full_disk, is_silent, silence_text, state_of
from cli.text.times import clock, span

MOST = 100_000
SHOWN = 4
"""Nodes that a hint names."""


def pending_lines(client: Api, pool: str | None) -> list[str]:
    """Return a hint about nodes that wait for an approval, which operators alone may give."""
    try:
        rows = pages(client, "/v1/enrolments", {"pool": pool}, MOST)
    except Refused:
        return []
    names = [str(row["node_id"]) for row in rows if row["state"] == "pending"]
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [
        f"pending: {', '.join(names[:SHOWN])}{more}; `berth nodes approve NODE` lets a node work"
    ]


def closed_lines(client: Api, pool: object) -> list[str]:
    """Return one line per node of the pool that is silent, lost or full, the latest first."""
    rows = pages(client, "/v1/nodes", {"pool": pool}, MOST)
    closed = sorted(
        (row for row in rows if is_silent(row) or not row["alive"] or has_full_disk(row)),
        key=lambda row: -cast("int", row["lost_at"] or row["suspected_at"]),
    )
    lines = [_closed(row) for row in closed[:SHOWN]]
    more = len(closed) - SHOWN
    return [*lines, f"{more} more nodes take no jobs: `berth nodes`"] if more > 0 else lines


def silent_lines(client: Api, pool: object, names: Sequence[str]) -> list[str]:
    """Return one line per silent node of a running job: for how long, and when its workers stop."""
    rows = pages(client, "/v1/nodes", {"pool": pool}, MOST)
    silent = [row for row in rows if row["node_id"] in names and is_silent(row)]
    if not silent:
        return []
    pools = items(client.get("/v1/pools"))
    settings = next((cast("Json", row["settings"]) for row in pools if row["pool"] == pool), {})
    lines = [
        f"its node {node['node_id']} is {silence_text(node)}; {_stop(node, settings)}"
        for node in silent[:SHOWN]
    ]
    more = len(silent) - SHOWN
    return [*lines, f"{more} more of its nodes are silent: `berth nodes`"] if more > 0 else lines


def silence_lines(client: Api, names: object) -> list[str]:
    """Return one line per node of these: for how long it is silent, and when it counts as lost.

    No line where the nodes cannot be read now: it is an addition to what is known.
    """
    if not isinstance(names, (list, tuple)):
        return []
    lines = []
    for name in map(str, names[:SHOWN]):
        try:
            node = client.get(f"/v1/nodes/{part(name)}")
        except CliError:
            continue
        if is_silent(node):
            lines.append(f"node {name} is {silence_text(node)}")
    return lines


def _stop(node: Json, settings: Json) -> str:
    from shared.contracts.terms import IN_EXECUTOR

    after_s = settings.get("lease_s" if node["backend"] in IN_EXECUTOR else "stop_after_s")
    if isinstance(after_s, (int, float)):
        return f"it stops its workers {span(after_s * 1000)} after the last heartbeat"
    return "its workers run on meanwhile"


def _closed(node: Json) -> str:
    name = f"node {node['node_id']} ({node['gpus']} GPUs)"
    if not node["alive"]:
        since = f"{name} is {state_of(node)} since {clock(node['lost_at'])}{_was_silent(node)}"
        return f"{since}: no job starts there"
    if is_silent(node):
        return f"{name} is {silence_text(node)}: no job starts there"
    show = f"`berth nodes show {node['node_id']}`"
    return f"{name} has a full disk: no job starts there until it has space again; {show}"


def _was_silent(node: Json) -> str:
    """Return how long a node was silent that was lost by its silence."""
    is_silence = node["state"] == "lost" and str(node["reason"]).partition("; ")[0] == "silent"
    if not is_silence or not node["silent_ms"]:
        return ""
    allowed = f" ({span(node['lost_after_ms'])} are allowed)" if node["lost_after_ms"] else ""
    return f", after {span(node['silent_ms'])} without a heartbeat{allowed}"
