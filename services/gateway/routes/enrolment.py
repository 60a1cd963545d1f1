"""Operators admit nodes: join tokens, enrolled nodes, approval and revocation."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from berth_client import answers
from services.gateway.core.strict import parse_body
from services.gateway.reads.paging import Limit, NamePart, PageToken, page_of_entries
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import (
    accepted_response,
    command_route,
    decide_by_access,
    json_response,
    send_access_command,
)
from services.gateway.requests.filters import check_pool
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.wiring import gateway_of
from shared.bus.clock import now_ms
from shared.contracts.base import Model, Name, Text
from shared.contracts.enrolment import (
    MAX_TOKEN_S,
    ApproveNode,
    CreateNodeToken,
    RevokeNode,
    RevokeNodeToken,
)
from shared.contracts.keys import format_key, hash_secret
from shared.contracts.node_registry import EnrolledNode, JoinToken

router = APIRouter(prefix="/v1/nodes", tags=["nodes"])
enrolments = APIRouter(prefix="/v1/enrolments", tags=["nodes"])
Node = Annotated[Name, Path(description="name of the node")]
Token = Annotated[Name, Path(description="public first part of the token")]


class CreateNodeTokenRequest(Model):
    """A new join token; the gateway generates the secret."""

    pool: Name = Field(description="pool of the nodes that join with it")
    ttl_s: int = Field(3600, ge=1, le=MAX_TOKEN_S, description="seconds until it expires")
    max_uses: int | None = Field(
        None, ge=1, le=100_000, description="nodes that may join with it; any number if not given"
    )
    approve: bool = Field(False, description="its nodes need no approval")
    replace: bool = Field(False, description="a machine may replace its own valid identity")


class RevokeNodeRequest(Model):
    """The reason of a revocation."""

    reason: Text = Field("", description="reason, for the record")


@router.post(
    "/tokens", **command_route(CreateNodeTokenRequest, 409, receipt=answers.NodeTokenReceipt)
)
async def create_node_token(request: Request) -> Response:
    """Create a join token for nodes of one pool. The response shows it once; it is valid then."""
    bearer = await authorize(request, "operator")
    body = parse_body(CreateNodeTokenRequest, await json_body(request))
    token_id, secret = f"t{secrets.token_hex(8)}", secrets.token_urlsafe(32)
    command = CreateNodeToken(token_id=token_id, sha256=hash_secret(secret), **body.model_dump())
    receipt = await decide_by_access(request, bearer.principal, command, token_id)
    return accepted_response(
        answers.NodeTokenReceipt(**receipt, token_id=token_id, token=format_key(token_id, secret))
    )


@router.get("/tokens", **read_route(answers.Page[answers.NodeToken], 422))
async def list_node_tokens(
    request: Request,
    ended: Annotated[
        bool, Query(description="include expired, used up and revoked tokens; old ones are dropped")
    ] = False,
    after: PageToken = None,
    limit: Limit = 1000,
) -> Response:
    """List the valid join tokens, without their secrets."""
    await authorize(request, "operator")
    now, known = now_ms(), gateway_of(request).access.view.enrolled.tokens
    tokens = {name: token for name, token in known.items() if ended or token.state(now) == "valid"}
    show = partial(token_row, now=now)
    return json_response(page_of_entries(tokens, show, after, limit, "token_id"))


@router.delete("/tokens/{token_id}", **command_route(None, 400, 409, 413, 415, 422))
async def revoke_node_token(request: Request, token_id: Token) -> Response:
    """End a join token; nodes that joined with it keep their identities."""
    bearer = await authorize(request, "operator")
    command = RevokeNodeToken(token_id=token_id)
    return accepted_response(await send_access_command(request, bearer, command, token_id))


@enrolments.get("", **read_route(answers.Page[answers.EnrolledNode], 422))
async def list_enrolled_nodes(
    request: Request, pool: NamePart = None, after: PageToken = None, limit: Limit = 1000
) -> Response:
    """List the nodes that joined with a token: pending, approved, expired or revoked."""
    await authorize(request, "operator")
    gateway = gateway_of(request)
    check_pool(gateway, pool)
    enrolled = gateway.access.view.enrolled.nodes
    nodes = {name: node for name, node in enrolled.items() if pool in (None, node.pool)}
    show = partial(enrolled_row, now=now_ms())
    return json_response(page_of_entries(nodes, show, after, limit, "node_id"))


@enrolments.get("/{node_id}", **read_route(answers.EnrolledNode, 404, 422))
async def show_enrolled_node(request: Request, node_id: Node) -> Response:
    """Show the identity of a node."""
    await authorize(request, "operator")
    node = gateway_of(request).access.view.enrolled.nodes.get(node_id)
    if node is None:
        raise not_found("node with an identity")
    return json_response(enrolled_row(node, now_ms()))


@router.post("/{node_id}/approve", **command_route(None, 400, 409, 413, 415, 422))
async def approve_node(request: Request, node_id: Node) -> Response:
    """Let a pending node work."""
    bearer = await authorize(request, "operator")
    command = ApproveNode(node_id=node_id)
    return accepted_response(await send_access_command(request, bearer, command, node_id))


@router.post("/{node_id}/revoke", **command_route(RevokeNodeRequest, 409, required=False))
async def revoke_node(request: Request, node_id: Node) -> Response:
    """Revoke the credential of a node; executors refuse it within about a second."""
    bearer = await authorize(request, "operator")
    body = parse_body(RevokeNodeRequest, await json_body(request))
    command = RevokeNode(node_id=node_id, reason=body.reason)
    return accepted_response(await send_access_command(request, bearer, command, node_id))


def token_row(token: JoinToken, now: int) -> dict[str, object]:
    """Return what operators see of a join token; the hash of its secret is not shown."""
    created = token.created
    return {
        "token_id": created.token_id,
        "pool": created.pool,
        "state": token.state(now),
        "approve": created.approve,
        "replace": created.replace,
        "uses": token.uses,
        "max_uses": created.max_uses,
        "expires_at": created.expires_at,
    }


def enrolled_row(node: EnrolledNode, now: int) -> dict[str, object]:
    """Return what operators see of an enrolled node; hashes of secrets are not shown."""
    return {
        "node_id": node.node_id,
        "pool": node.pool,
        "state": node.state(now),
        "expires_at": node.expires_at,
        "token_id": node.token_id,
        "hardware": node.hardware,
    }
