"""Nodes, the queue and allocations, and the commands of operators about nodes."""

from __future__ import annotations

import math
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from services.gateway import queries
from services.gateway.authorization import authorize
from services.gateway.body import json_body
from services.gateway.commands import (
    CommandReceipt,
    accepted_response,
    json_response,
    lane_of_pool,
    send_command,
)
from services.gateway.core.strict import parse_body
from services.gateway.database import Row
from services.gateway.openapi import problem_responses, request_body
from services.gateway.paging import Limit, PageToken, page_of
from services.gateway.problem import ApiError, not_found
from services.gateway.wiring import Gateway, gateway_of
from shared.bus.clock import now_ms
from shared.contracts.base import Command, JobId, Model, Name, Text
from shared.contracts.nodes import Backend, CordonNode, DeclareNodeLost, DrainNode, UncordonNode
from shared.contracts.registry import Bearer
from shared.contracts.terms import present_silence_bound_ms

router = APIRouter(prefix="/v1", tags=["nodes"])
Node = Annotated[Name, Path(description="name of the node")]
Verb = Literal["cordon", "uncordon", "drain"]
Pool = Annotated[Name | None, Query(description="only this pool")]


class NodeRequest(Model):
    """Reason, and the pool if Postgres is unavailable."""

    reason: Text = Field("", description="reason, for the record")
    pool: Name | None = Field(None, description="pool of the node, if Postgres is unavailable")


class LossRequest(NodeRequest):
    """Declares a node lost: what an operator knows of its machine, and why."""

    powered_off: bool = Field(
        False, description="the machine is off: its GPUs are released at once"
    )


@router.get("/nodes", responses=problem_responses(422))
async def list_nodes(
    request: Request, pool: Pool = None, after: PageToken = None, limit: Limit = 1000
) -> Response:
    """List nodes with their GPUs; `used_milli` has the thousandths in use of each GPU.

    `state` is joined, suspected, declared or lost; after `lost_after_ms` of silence a node is lost,
    null: never. `identity` is that of a node that joined with a token: pending, approved, expired
    or revoked, null for another.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    rows = await gateway.database.rows(bearer, queries.NODES, pool, after, limit)
    shown = [
        {**row, "lost_after_ms": lost_after_ms(gateway, row), "identity": identity_of(gateway, row)}
        for row in rows
    ]
    return json_response(page_of(shown, limit, "node_id"))


def identity_of(gateway: Gateway, row: Row) -> str | None:
    """Return the state of the node's identity; None for a node that never joined by a token."""
    enrolled = gateway.access.view.enrolled.nodes.get(str(row["node_id"]))
    return enrolled.state(now_ms()) if enrolled is not None else None


def lost_after_ms(gateway: Gateway, row: Row) -> int | None:
    """Return the ms of silence that lose a node: as placement noted it, else by the pool's terms.

    Placement notes it with a suspicion; it knows whether older terms may still be in use.
    """
    pool = gateway.access.view.pool(str(row["pool"]))
    if row["suspected_at"] or pool is None:
        return int(str(row["lost_after_ms"])) or None
    backend = cast("Backend", row["backend"])
    silence_ms = present_silence_bound_ms(pool, backend)
    return math.ceil(silence_ms) if math.isfinite(silence_ms) else None


@router.post(
    "/nodes/{node_id}/lost",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(400, 404, 413, 415, 422),
    openapi_extra=request_body(LossRequest, required=False),
)
async def declare_lost(request: Request, node_id: Node) -> Response:
    """Give a node up: its jobs stop, its agent is fenced; its GPUs are released by proof alone."""
    bearer = await authorize(request, "operator")
    body = parse_body(LossRequest, await json_body(request))
    command = DeclareNodeLost(node_id=node_id, powered_off=body.powered_off, reason=body.reason)
    return await _send(request, bearer, command, node_id, body.pool)


@router.post(
    "/nodes/{node_id}/{verb}",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(400, 404, 413, 415, 422),
    openapi_extra=request_body(NodeRequest, required=False),
)
async def change_node(request: Request, node_id: Node, verb: Verb) -> Response:
    """Cordon: no new job starts on the node. Drain: its jobs are moved as well. Uncordon: undo."""
    bearer = await authorize(request, "operator")
    body = parse_body(NodeRequest, await json_body(request))
    command = _command(node_id, verb, body.reason)
    return await _send(request, bearer, command, node_id, body.pool)


async def _send(
    request: Request, bearer: Bearer, command: Command, node_id: str, pool: str | None
) -> Response:
    """Send the command to the lane of the node; `pool` names it if Postgres is unavailable."""
    gateway = gateway_of(request)
    lane = await _lane(gateway, bearer, node_id, pool)
    receipt = await send_command(
        request, gateway, bearer, command, lane=lane, subject=node_id, span="node"
    )
    return accepted_response(receipt)


def _command(node_id: str, verb: Verb, reason: str) -> Command:
    match verb:
        case "cordon":
            return CordonNode(node_id=node_id, reason=reason)
        case "drain":
            return DrainNode(node_id=node_id, reason=reason)
        case "uncordon":
            return UncordonNode(node_id=node_id)


async def _lane(gateway: Gateway, bearer: Bearer, node_id: str, pool: str | None) -> int:
    """Return the lane of the given pool, else of the node in Postgres, else the only lane."""
    if pool is not None:
        return lane_of_pool(gateway, pool)
    try:
        row = await gateway.database.row(bearer, queries.LANE_OF_NODE, node_id)
    except ApiError:
        lanes = set(gateway.access.pools().values())
        if len(lanes) != 1:
            raise
        return lanes.pop()
    if row is None:
        raise not_found("node")
    return int(str(row["partition"]))


@router.get("/queue", responses=problem_responses(422))
async def list_queue(request: Request, pool: Pool = None, limit: Limit = 100) -> Response:
    """List waiting jobs in the order of priority."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    rows = await gateway.database.rows(bearer, queries.QUEUE, bearer.tenant, pool, limit)
    return json_response({"items": rows, "next": None})


@router.get("/allocations", responses=problem_responses(422))
async def list_allocations(
    request: Request,
    pool: Pool = None,
    job: Annotated[JobId | None, Query(description="only this job")] = None,
    released: Annotated[bool, Query(description="include released allocations")] = False,
    after: PageToken = None,
    limit: Limit = 100,
) -> Response:
    """List allocations: the GPUs of each worker."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    rows = await gateway.database.rows(
        bearer, queries.ALLOCATIONS, bearer.tenant, pool, job, released, after, limit
    )
    return json_response(page_of(rows, limit, "allocation_id"))
