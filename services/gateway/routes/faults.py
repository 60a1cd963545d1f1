"""Suspicions of slow workers, and what operators say of them: fail-slow answers."""

from __future__ import annotations

from typing import Annotated, Literal

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
from services.gateway.openapi import problem_responses, request_body
from services.gateway.paging import Limit, TimeCursor, TimeToken, page_of
from services.gateway.problem import not_found
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import Command, Model, Name, Text
from shared.contracts.faults import DismissFault, MarkFalseAlarm
from shared.contracts.registry import Bearer

router = APIRouter(prefix="/v1/faults", tags=["faults"])
FaultId = Annotated[
    str, Path(max_length=128, pattern=r"^[A-Za-z0-9._:/-]+$", description="the fault")
]
State = Literal["suspected", "cleared", "dismissed", "false_alarm"]


class FaultRequest(Model):
    """Why, and where if the gateway cannot know."""

    reason: Text = Field("", description="for the record")
    pool: Name | None = Field(None, description="the fault's pool, while Postgres is away")


@router.get("", responses=problem_responses(422))
async def list_faults(
    request: Request,
    pool: Annotated[Name | None, Query(description="of this pool alone")] = None,
    node: Annotated[Name | None, Query(description="of this node alone")] = None,
    state: Annotated[State | None, Query(description="such as suspected")] = None,
    after: TimeToken = None,
    limit: Limit = 100,
) -> Response:
    """Workers that were slower than their peers, the youngest suspicion first."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    place = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.FAULTS, bearer.tenant, pool, node, state, place.at, place.key, limit
    )
    return json_response(page_of(rows, limit, "suspected_at", "fault_id"))


@router.post(
    "/{fault_id:path}/dismiss",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(400, 404, 413, 415, 422),
    openapi_extra=request_body(FaultRequest, required=False),
)
async def dismiss(request: Request, fault_id: FaultId) -> Response:
    """The suspicion is seen and nothing is to be done about it."""
    return await _order(request, fault_id, DismissFault)


@router.post(
    "/{fault_id:path}/false-alarm",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(400, 404, 413, 415, 422),
    openapi_extra=request_body(FaultRequest, required=False),
)
async def false_alarm(request: Request, fault_id: FaultId) -> Response:
    """The worker was healthy: the detector's record says so."""
    return await _order(request, fault_id, MarkFalseAlarm)


async def _order(
    request: Request, fault_id: str, kind: type[DismissFault] | type[MarkFalseAlarm]
) -> Response:
    gateway = gateway_of(request)
    bearer = await authorize(request, "operator")
    body = parse_body(FaultRequest, await json_body(request))
    lane = await _lane(gateway, bearer, fault_id, body.pool)
    command: Command = kind(fault_id=fault_id, reason=body.reason)
    return accepted_response(
        await send_command(
            request, gateway, bearer, command, lane=lane, subject=fault_id, span="fault"
        )
    )


async def _lane(gateway: Gateway, bearer: Bearer, fault_id: str, pool: str | None) -> int:
    """As told, or as Postgres knows."""
    if pool is not None:
        return lane_of_pool(gateway, pool)
    row = await gateway.database.row(bearer, queries.LANE_OF_FAULT, fault_id)
    if row is None:
        raise not_found("fault")
    return int(str(row["partition"]))
