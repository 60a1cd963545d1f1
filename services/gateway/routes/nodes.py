"""Nodes, the queue and allocations, and the commands of operators about nodes."""

from __future__ import annotations

import math
from typing import Annotated, cast

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from berth_client import answers
from services.gateway.core.strict import parse_body
from services.gateway.reads import queries
from services.gateway.reads.database import Row
from services.gateway.reads.paging import Limit, PageToken, page_of
from services.gateway.requests.archived_rows import with_left_before
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import (
    accepted_response,
    command_route,
    decide_by_access,
    json_response,
    lane_of_pool,
    send_command,
)
from services.gateway.requests.filters import check_job, check_pool
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import ApiError, not_found
from services.gateway.wiring import Gateway, gateway_of
from shared.bus.clock import now_ms
from shared.contracts.base import Command, JobId, Model, Name, Text
from shared.contracts.enrolment import ForgetNode
from shared.contracts.nodes import Backend, CordonNode, DeclareNodeLost, DrainNode, UncordonNode
from shared.contracts.registry import Bearer
from shared.contracts.terms import present_silence_bound_ms, suspicion_bound_ms

router = APIRouter(prefix="/v1", tags=["nodes"])
Node = Annotated[Name, Path(description="name of the node")]
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


@router.get("/nodes", **read_route(answers.Page[answers.Node], 422))
async def list_nodes(
    request: Request, pool: Pool = None, after: PageToken = None, limit: Limit = 1000
) -> Response:
    """List nodes with their GPUs; `used_milli` has the thousandths in use of each GPU.

    `state` is joined, suspected, declared or lost; `silent_ms` is the present silence of a
    suspected node; after `lost_after_ms` of silence a node is lost,
    null: never. `problems` has what is wrong with a node that lives: `cloned_identity`, another
    agent works with its identity; `disk_full`, `engine_drained` and `foreign_work`, it takes no new
    work; `gpu_fault`, `gpu_slow` and `inventory_differs`, for which it is cordoned.
    `suspicions` has what `health` follows from: a slow worker's fault, or the history of faults of
    the node or of the GPU `gpu`, with the slowdown that it counts for and until when.
    `identity` is that of a node that joined with a token: pending, approved, expired
    or revoked, null for another. `as_of` is the time of the answer, or the last moment of a
    recorded simulation.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    check_pool(gateway, pool)
    rows = await gateway.database.rows(bearer, queries.NODES, pool, after, limit)
    page = page_of(rows, limit, "node_id")
    items = [node_row(gateway, bearer, row) for row in rows if not is_forgotten(gateway, row)]
    return json_response({**page, "items": items})


@router.get("/nodes/{node_id}", **read_route(answers.Node, 404, 422))
async def show_node(request: Request, node_id: Node) -> Response:
    """Show a node as the list of nodes does."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    row = await gateway.database.row(bearer, queries.NODE, node_id)
    if row is None or is_forgotten(gateway, row):
        raise not_found("node")
    return json_response(node_row(gateway, bearer, row))


@router.delete("/nodes/{node_id}", **command_route(None, 404, 409, 422))
async def forget_node(request: Request, node_id: Node) -> Response:
    """Forget a node that is gone for good: its identity, its cordon and its row in the lists.

    409 while it is alive, holds GPUs, or has a valid identity: it could work again.
    """
    bearer = await authorize(request, "operator")
    gateway = gateway_of(request)
    row = await gateway.database.row(bearer, queries.NODE, node_id)
    if row is not None:
        check_gone(row)
    if node_id not in gateway.access.view.enrolled.nodes:
        await gateway.access.catch_up()
    if node_id not in gateway.access.view.enrolled.nodes:
        raise not_found("node with an identity")
    command = ForgetNode(node_id=node_id)
    receipt = await decide_by_access(request, bearer.principal, command, node_id)
    if row is not None and row["cordoned"]:
        await send_to_node(request, bearer, UncordonNode(node_id=node_id), node_id, None)
    return accepted_response(receipt)


def check_gone(row: Row) -> None:
    """Raise a 409 for a node that is alive or holds GPUs."""
    node_id, used = row["node_id"], sum(cast("list[int]", row["used_milli"]))
    if row["alive"]:
        rule = "drain it, stop its agent, and wait until it is lost"
        raise ApiError(409, "node_alive", f"node_id: {node_id!r}: is {row['state']}; {rule}")
    if used:
        rule = "released by proof; `berth nodes lost --powered-off` if it is off"
        raise ApiError(409, "node_holds_gpus", f"node_id: {node_id!r}: holds GPUs; {rule}")


def is_forgotten(gateway: Gateway, row: Row) -> bool:
    """Return whether a lost node with an agent has no identity any more; it holds no GPU then."""
    if row["alive"] or row["backend"] != "agent" or any(cast("list[int]", row["used_milli"])):
        return False
    return gateway.access.ready and identity_of(gateway, row) is None


def node_row(gateway: Gateway, bearer: Bearer, row: Row) -> Row:
    """Return the row with what Postgres lacks: present silence, its bound, the identity's state."""
    return {
        **row,
        "suspicions": suspicions_for(bearer, row),
        "as_of": gateway.shown_ms(),
        "silent_ms": silent_ms(gateway, row),
        "lost_after_ms": lost_after_ms(gateway, row),
        "identity": identity_of(gateway, row),
    }


def suspicions_for(bearer: Bearer, row: Row) -> list[Row]:
    """Return the suspicions of a node; a tenant sees no fault's id, which names a job."""
    suspicions = cast("list[Row]", row["suspicions"])
    if bearer.tenant is None:
        return suspicions
    return [{**own, "fault_id": ""} for own in suspicions]


def identity_of(gateway: Gateway, row: Row) -> str | None:
    """Return the state of the node's identity; None for a node that never joined by a token."""
    enrolled = gateway.access.view.enrolled.nodes.get(str(row["node_id"]))
    return enrolled.state(now_ms()) if enrolled is not None else None


def silent_ms(gateway: Gateway, row: Row) -> int:
    """Return the present ms of silence of a suspected node; of another what placement noted.

    It has passed the bound of a suspicion when the node is suspected, and goes on from there. After
    a count that began anew, what placement noted is below that bound: it is returned.
    """
    noted_ms, suspected_at = cast("int", row["silent_ms"]), cast("int", row["suspected_at"])
    pool = gateway.access.view.pool(str(row["pool"]))
    if not row["alive"] or not suspected_at or pool is None:
        return noted_ms
    bound_ms = suspicion_bound_ms(pool, cast("Backend", row["backend"]))
    if noted_ms < bound_ms:
        return noted_ms
    return max(noted_ms, gateway.shown_ms() - suspected_at + bound_ms)


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


@router.post("/nodes/{node_id}/lost", **command_route(LossRequest, 404, required=False))
async def declare_lost(request: Request, node_id: Node) -> Response:
    """Give a node up: its jobs stop, its agent is fenced; its GPUs are released by proof alone."""
    bearer = await authorize(request, "operator")
    body = parse_body(LossRequest, await json_body(request))
    command = DeclareNodeLost(node_id=node_id, powered_off=body.powered_off, reason=body.reason)
    return await send_to_node(request, bearer, command, node_id, body.pool)


@router.post("/nodes/{node_id}/cordon", **command_route(NodeRequest, 404, required=False))
async def cordon_node(request: Request, node_id: Node) -> Response:
    """Mark a node unschedulable: no new job starts there, running ones finish."""
    return await _change(request, node_id, CordonNode)


@router.post("/nodes/{node_id}/drain", **command_route(NodeRequest, 404, required=False))
async def drain_node(request: Request, node_id: Node) -> Response:
    """Cordon a node and move its jobs to others; those that cannot be moved stop and queue."""
    return await _change(request, node_id, DrainNode)


@router.post("/nodes/{node_id}/uncordon", **command_route(NodeRequest, 404, required=False))
async def uncordon_node(request: Request, node_id: Node) -> Response:
    """Mark a node schedulable."""
    return await _change(request, node_id, UncordonNode)


async def _change(
    request: Request, node_id: str, change: type[CordonNode | DrainNode | UncordonNode]
) -> Response:
    """Send the command with the reason of the body; a field that it lacks is ignored."""
    bearer = await authorize(request, "operator")
    body = parse_body(NodeRequest, await json_body(request))
    command = change.model_validate({"node_id": node_id, "reason": body.reason})
    return await send_to_node(request, bearer, command, node_id, body.pool)


async def send_to_node(
    request: Request, bearer: Bearer, command: Command, node_id: str, pool: str | None
) -> Response:
    """Send the command to the lane of the node; `pool` names it if Postgres is unavailable."""
    gateway = gateway_of(request)
    lane = await _lane(gateway, bearer, node_id, pool)
    receipt = await send_command(
        request, gateway, bearer, command, lane=lane, subject=node_id, span="node"
    )
    return accepted_response(receipt)


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


@router.get("/queue", **read_route(answers.Page[answers.QueuedJob], 422))
async def list_queue(request: Request, pool: Pool = None, limit: Limit = 100) -> Response:
    """List waiting jobs in the order of priority."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    check_pool(gateway, pool)
    rows = await gateway.database.rows(bearer, queries.QUEUE, bearer.tenant, pool, limit)
    return json_response({"items": rows, "next": None})


@router.get("/allocations", **read_route(answers.Page[answers.Allocation], 422))
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
    check_pool(gateway, pool)
    rows = await gateway.database.rows(
        bearer, queries.ALLOCATIONS, bearer.tenant, pool, job, released, after, limit
    )
    if not rows:
        await check_job(gateway, bearer, "job", job)
    page = page_of(rows, limit, "allocation_id")
    return json_response(await with_left_before(gateway, bearer, page, "allocation"))
