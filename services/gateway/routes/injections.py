"""Faults that administrators inject on nodes, for drills."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import Field

from services.gateway.core.strict import parse_body
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import command_route
from services.gateway.routes.nodes import Node, NodeRequest, send_to_node
from shared.contracts.injections import (
    MAX_FACTOR,
    MAX_INJECTION_S,
    EndInjection,
    InjectedKind,
    InjectFault,
)

router = APIRouter(prefix="/v1", tags=["nodes"])


class InjectionRequest(NodeRequest):
    """The fault of a drill, and how long it lasts."""

    fault: InjectedKind = Field(description="slow, stop, flap or link")
    factor: float = Field(2.0, gt=1, le=MAX_FACTOR, description="multiple of time; not of stop")
    for_s: float = Field(gt=0, le=MAX_INJECTION_S, description="wall s until it ends by itself")


@router.post("/nodes/{node_id}/inject", **command_route(InjectionRequest, 404))
async def inject_fault(request: Request, node_id: Node) -> Response:
    """Inject a fault on a node for a while, where its pool has `allow_injection`.

    It replaces one that the node has. Its begin and its end are events.
    """
    bearer = await authorize(request, "admin")
    body = parse_body(InjectionRequest, await json_body(request))
    command = InjectFault(
        node_id=node_id, fault=body.fault, factor=body.factor, for_s=body.for_s, reason=body.reason
    )
    return await send_to_node(request, bearer, command, node_id, body.pool)


@router.post("/nodes/{node_id}/end-injection", **command_route(NodeRequest, 404, required=False))
async def end_injection(request: Request, node_id: Node) -> Response:
    """End the injected fault of a node before its time."""
    bearer = await authorize(request, "admin")
    body = parse_body(NodeRequest, await json_body(request))
    command = EndInjection(node_id=node_id, reason=body.reason)
    return await send_to_node(request, bearer, command, node_id, body.pool)
