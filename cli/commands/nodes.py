"""`berth nodes`, `cordon`, `uncordon`, `drain`: the nodes of the pools."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.answers import api, await_answer, pages, report
from cli.api.http import Api, Json, part, pool_field
from cli.app import ListGroup
from cli.commands.enrolment import (
    approve,
    forget,
    list_identities,
    revoke,
    revoke_token,
    show,
    token,
    tokens,
)
from cli.commands.node_hints import pending_lines
from cli.commands.validate_nodes import validate
from cli.errors import CliError
from cli.input.arguments import AsJson, Data, Limit, NodeArgument, OnlyPool, PoolOfObject, Reason
from cli.text.nodes import COLUMNS, is_gone, loss_text, node_row
from cli.text.output import emit, report_line, table

Everything = Annotated[
    bool, typer.Option("--all", help="Also lost nodes that were revoked, or lost a week ago.")
]
PAST = {"cordon": "cordoned", "uncordon": "uncordoned", "drain": "draining"}
"""The state of a node once the command is accepted."""

nodes = typer.Typer(cls=ListGroup, help="Nodes and their identities; without a verb: list.")
for _verb in (show, token, tokens, revoke_token, approve, revoke, forget, validate):
    nodes.command()(_verb)


@nodes.command("list")
def list_nodes(
    pool: OnlyPool = None,
    limit: Limit = 1000,
    everything: Everything = False,
    enrolled: Annotated[
        bool, typer.Option("--enrolled", help="List identities, also of pending nodes.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List nodes with their GPUs and GPU use."""
    if enrolled:
        list_identities(api(data), pool, limit, as_json)
        return
    client = api(data)
    rows = pages(client, "/v1/nodes", {"pool": pool}, limit)
    if as_json:
        emit(rows)
        return
    shown = [row for row in rows if everything or not is_gone(row)]
    table(COLUMNS, map(node_row, shown), "no nodes")
    if gone := len(rows) - len(shown):
        report_line(f"{gone} more nodes are gone; `berth nodes --all` lists them")
    for line in pending_lines(client, pool):
        report_line(line)


@nodes.command()
def lost(
    node: NodeArgument,
    powered_off: Annotated[
        bool,
        typer.Option(
            "--powered-off",
            help="The machine is off: release its GPUs now; refused while heartbeats arrive.",
        ),
    ] = False,
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Give a node up: its jobs stop; its GPUs are released when nothing of it can be alive.

    The agent of a node that lives ends all of its workers, joins anew and takes work again.
    """
    client = api(data)
    before = state_before(client, node)
    body: Json = {"powered_off": powered_off, "reason": reason, **pool_field(pool)}
    answer = await_answer(client, client.post(f"/v1/nodes/{part(node)}/lost", body))
    outcome = "already lost" if answer["duplicate"] else "declared lost"
    if before is not None and not answer["duplicate"]:
        outcome = f"{outcome}; {loss_text(before, powered_off=powered_off)}"
    report(as_json, answer, f"{node}: {outcome}")


def state_before(client: Api, node: str) -> Json | None:
    """Return the node as it is; None where it cannot be read, which is no reason to keep it."""
    try:
        return client.get(f"/v1/nodes/{part(node)}")
    except CliError:
        return None


def cordon(
    node: NodeArgument,
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Mark a node unschedulable."""
    _order("cordon", node, reason, pool, as_json, data)


def uncordon(
    node: NodeArgument, pool: PoolOfObject = None, as_json: AsJson = False, data: Data = None
) -> None:
    """Mark a node schedulable again: the undo of `berth cordon` and `berth drain`."""
    _order("uncordon", node, "", pool, as_json, data)


def drain(
    node: NodeArgument,
    reason: Reason = "",
    pool: PoolOfObject = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Cordon a node and move its jobs to other nodes; what cannot be moved is stopped and queued.

    `berth cordon NODE` lets running jobs finish there instead; `berth uncordon NODE` undoes both.
    """
    _order("drain", node, reason, pool, as_json, data)


def _order(verb: str, node: str, reason: str, pool: str | None, as_json: bool, data: Data) -> None:
    client = api(data)
    body: Json = {"reason": reason, **pool_field(pool)}
    answer = await_answer(client, client.post(f"/v1/nodes/{part(node)}/{verb}", body))
    report(as_json, answer, f"{node}: {PAST[verb]}")
