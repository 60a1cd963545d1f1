"""`berth nodes token`, `tokens`, `approve`, `revoke`, `forget`, `show`: identities of nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.api.answers import api, await_answer, pages, report
from cli.api.http import Api, Json, part
from cli.api.target import is_in_memory
from cli.errors import NotFound
from cli.input.arguments import AsJson, Data, Limit, NodeArgument, Reason
from cli.text.nodes import health_lines, labelled_fields, loss_lines, node_text, problem_lines
from cli.text.output import emit, report_line, table
from cli.text.times import clock, label, parse_span_s


def token(
    pool: Annotated[str, typer.Option(help="Pool of the nodes that join with it.")],
    ttl: Annotated[str, typer.Option(help="Time until it expires, such as 30m, 1h or 7d.")] = "1h",
    uses: Annotated[
        int | None, typer.Option(min=1, help="Nodes that may join with it; any number by default.")
    ] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Its nodes need no `berth nodes approve`.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="A reinstalled machine takes its own name without revoke."),
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Create a join token; it is shown once and not stored."""
    flags = {"approve": approve, "replace": replace}
    body: Json = {"pool": pool, "ttl_s": parse_span_s(ttl), **flags}
    client = api(data)
    receipt = client.post("/v1/nodes/tokens", {**body, **({"max_uses": uses} if uses else {})})
    if not as_json:
        report_line(f"shown once; on the node: {join_line(client)}")
        if not approve:
            report_line("then here, for each node: berth nodes approve NODE")
        if is_in_memory(data):
            report_line("the node's identity ends with this stack: its data is in memory")
    report(as_json, receipt, str(receipt["token"]))


def tokens(
    ended: Annotated[
        bool, typer.Option("--ended", help="Also expired, used up and revoked ones.")
    ] = False,
    limit: Limit = 1000,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List the valid join tokens."""
    rows = pages(api(data), "/v1/nodes/tokens", {"ended": "true" if ended else None}, limit)
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
    table(("TOKEN", "POOL", "STATE", "APPROVES", "USES", "EXPIRES"), cells, "no valid join tokens")


def revoke_token(
    token_id: Annotated[str, typer.Argument(help="First part of the token.", metavar="TOKEN")],
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """End a join token; nodes that joined with it keep their identities."""
    client = api(data)
    ticket = client.delete(f"/v1/nodes/tokens/{part(token_id)}")
    report(as_json, await_answer(client, ticket), f"{token_id}: revoked")


def join_line(client: Api) -> str:
    """Return the command with which a node joins, with the CA that it has to trust."""
    line = f"berth-agent join {client.url} --token-file FILE"
    if not client.url.startswith("https:") or not client.ca:
        return line
    return f"{line} --ca ca.crt (a copy of {client.ca})"


def approve(node: NodeArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Let a node work that joined with a token without --approve."""
    client = api(data)
    answer = await_answer(client, client.post(f"/v1/nodes/{part(node)}/approve", {}))
    report(as_json, answer, f"{node}: approved")


def revoke(
    node: NodeArgument, reason: Reason = "", as_json: AsJson = False, data: Data = None
) -> None:
    """Take away a node's identity; executors refuse it within about a second."""
    client = api(data)
    identity = _identity(client, node) or {}
    ticket = client.post(f"/v1/nodes/{part(node)}/revoke", {"reason": reason})
    report(as_json, await_answer(client, ticket), f"{node}: revoked")
    if not as_json and identity.get("token_id"):
        token_id = identity["token_id"]
        report_line(f"it joined with token {token_id}, see berth nodes tokens and revoke-token")


def forget(node: NodeArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Remove a revoked node that is gone for good from all lists; its name is free then."""
    client = api(data)
    answer = await_answer(client, client.delete(f"/v1/nodes/{part(node)}"))
    report(as_json, answer, f"{node}: forgotten")


def show(node: NodeArgument, as_json: AsJson = False, data: Data = None) -> None:
    """Show a node: its identity, and its GPUs and state if it has joined its pool."""
    client = api(data)
    row = _find_node(client, node)
    identity = _identity(client, node)
    if row is None and identity is None:
        raise NotFound(f"no such node: {node}; `berth nodes` lists all")
    document = {**(row or {"node_id": node}), "identity": identity}
    if as_json:
        emit(document)
        return
    shown = {
        **document,
        **labelled_fields(document),
        **{f"identity {name}": value for name, value in (identity or {}).items()},
    }
    fields = (
        (label(name), node_text(name, value))
        for name, value in shown.items()
        if name not in ("identity", "as_of", "problems", "suspicions")
    )
    problems = (("problem", line) for line in problem_lines(document))
    pending = identity is not None and identity["state"] == "pending"
    hint = [("pending", f"`berth nodes approve {node}` lets it work")] if pending else []
    loss = (("lost", line) for line in loss_lines(document))
    table(("FIELD", "VALUE"), (*fields, *health_lines(document), *problems, *loss, *hint))


def list_identities(client: Api, pool: str | None, limit: int, as_json: bool) -> None:
    """Print the nodes that joined with a token, of one pool or all."""
    rows = pages(client, "/v1/enrolments", {"pool": pool}, limit)
    if as_json:
        emit(rows)
        return
    names = ("node_id", "pool", "state", "token_id")
    cells = ((*(row[name] for name in names), clock(row["expires_at"])) for row in rows)
    table(("NODE", "POOL", "IDENTITY", "TOKEN", "EXPIRES"), cells, "no enrolled nodes")


def _identity(client: Api, node: str) -> Json | None:
    try:
        return client.get(f"/v1/enrolments/{part(node)}")
    except NotFound:
        return None


def _find_node(client: Api, node_id: str) -> Json | None:
    """Return the row of a node, also of one that is lost."""
    try:
        return client.get(f"/v1/nodes/{part(node_id)}")
    except NotFound:
        return None
