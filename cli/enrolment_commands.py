"""`berth nodes token`, `tokens`, `approve`, `revoke`, `show`: the identities of nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.answers import api, await_answer, pages, report
from cli.arguments import AsJson, Data
from cli.errors import NotFound
from cli.http_api import Api, Json, part
from cli.node_rows import find_node
from cli.output import emit, say, table
from cli.times import clock, field_text, parse_span_s

Limit = Annotated[int, typer.Option(min=1, help="Maximum number of rows.")]
NodeArgument = Annotated[str, typer.Argument(help="Node id.", metavar="NODE")]


def token(
    pool: Annotated[str, typer.Option(help="Pool of the nodes that join with it.")],
    ttl: Annotated[str, typer.Option(help="Time until it expires, such as 30m, 1h or 7d.")] = "1h",
    uses: Annotated[
        int | None, typer.Option(min=1, help="Nodes that may join with it; any number by default.")
    ] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Its nodes need no `berth nodes approve`.")
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Create a join token; it is shown once and not stored."""
    body: Json = {"pool": pool, "ttl_s": parse_span_s(ttl), "approve": approve}
    client = api(data)
    receipt = client.post("/v1/nodes/tokens", {**body, **({"max_uses": uses} if uses else {})})
    if not as_json:
        say(f"shown once; on the node: {_join_line(client)}")
    report(as_json, receipt, str(receipt["token"]))


def tokens(limit: Limit = 1000, as_json: AsJson = False, data: Data = None) -> None:
    """List the join tokens: valid, expired, used up or revoked."""
    rows = pages(api(data), "/v1/nodes/tokens", {}, limit)
    if as_json:
        emit(rows)
        return
    cells = (
        (
            row["token_id"],
            row["pool"],
            row["state"],
            "yes" if row["approve"] else "no",
            row["uses"] if row["max_uses"] is None else f"{row['uses']} of {row['max_uses']}",
            clock(row["expires_at"]),
        )
        for row in rows
    )
    table(("TOKEN", "POOL", "STATE", "APPROVES", "USES", "EXPIRES"), cells, "no join tokens")


def revoke_token(
    token_id: Annotated[str, typer.Argument(help="First part of the token.", metavar="TOKEN")],
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """End a join token; nodes that joined with it keep their identities."""
    client = api(data)
    ticket = client.post(f"/v1/nodes/tokens/{part(token_id)}/revoke", {})
    report(as_json, await_answer(client, ticket), f"token {token_id} revoked")


def _join_line(client: Api) -> str:
    """Return the command with which a node joins, with the CA that it has to trust."""
    line = f"berth-agent join {client.url} --token-file FILE"
    if not client.url.startswith("https:") or not client.ca:
        return line
    return f"{line} --ca ca.crt (a copy of {client.ca})"


def approve(node: NodeArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Let a node work that joined with a token without --approve."""
    client = api(data)
    answer = await_answer(client, client.post(f"/v1/nodes/{part(node)}/approve", {}))
    report(as_json, answer, f"{node} approved")


def revoke(
    node: NodeArgument,
    reason: Annotated[str, typer.Option(help="Reason, recorded in the audit log.")] = "",
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Take away a node's identity; executors refuse it within about a second."""
    client = api(data)
    identity = _identity(client, node) or {}
    ticket = client.post(f"/v1/nodes/{part(node)}/revoke", {"reason": reason})
    report(as_json, await_answer(client, ticket), f"{node} revoked")
    if not as_json and identity.get("token_id"):
        token_id = identity["token_id"]
        say(f"it joined with token {token_id}, see berth nodes tokens and revoke-token")


def show(node: NodeArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show a node: its identity, and its GPUs and state if it has joined its pool."""
    client = api(data)
    row = find_node(client, node)
    identity = _identity(client, node)
    if row is None and identity is None:
        raise NotFound(f"no such node: {node}")
    document = {**(row or {"node_id": node}), "identity": identity}
    if as_json:
        emit(document)
        return
    shown = {**document, **{f"identity {name}": value for name, value in (identity or {}).items()}}
    fields = (
        (name, field_text(name, value)) for name, value in shown.items() if name != "identity"
    )
    table(("FIELD", "VALUE"), fields)


def list_identities(client: Api, limit: int, as_json: bool) -> None:
    """Print the nodes that joined with a token."""
    rows = pages(client, "/v1/enrolments", {}, limit)
    if as_json:
        emit(rows)
        return
    names = ("node_id", "pool", "state", "token_id")
    cells = ((*(row[name] for name in names), clock(row["expires_at"])) for row in rows)
    table(("NODE", "POOL", "IDENTITY", "TOKEN", "EXPIRES"), cells, "no node has joined by a token")


def _identity(client: Api, node: str) -> Json | None:
    try:
        return client.get(f"/v1/enrolments/{part(node)}")
    except NotFound:
        return None
