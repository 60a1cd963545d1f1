"""Suspicions of slow workers, and what operators say of them: fail-slow answers."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from services.gateway import queries
from services.gateway.body import json_body
from services.gateway.core.strict import checked
from services.gateway.docs import refusals, takes
from services.gateway.entry import entered
from services.gateway.orders import Ticket, accepted, lane_of_pool, order, shown
from services.gateway.paging import Limit, TimePage, TimeToken, page
from services.gateway.parts import Gateway, gateway
from services.gateway.problem import not_found
from shared.contracts.base import Command, Model, Name, Text
from shared.contracts.faults import DismissFault, MarkFalseAlarm
from shared.contracts.registry import Bearer

router = APIRouter(prefix="/v1/faults", tags=["faults"])
FaultId = Annotated[
    str, Path(max_length=128, pattern=r"^[A-Za-z0-9._:/-]+$", description="the fault")
]
State = Literal["suspected", "cleared", "dismissed", "false_alarm"]


class FaultOrder(Model):
    """Why, and where if the gateway cannot know."""

    reason: Text = Field("", description="for the record")
    pool: Name | None = Field(None, description="the fault's pool, while Postgres is away")


@router.get("", responses=refusals(422))
async def list_faults(
    request: Request,
    pool: Annotated[Name | None, Query(description="of this pool alone")] = None,
    node: Annotated[Name | None, Query(description="of this node alone")] = None,
    state: Annotated[State | None, Query(description="such as suspected")] = None,
    after: TimeToken = None,
    limit: Limit = 100,
) -> Response:
    """Workers that were slower than their peers, the youngest suspicion first."""
    parts = gateway(request)
    bearer = await entered(request, "viewer")
    place = TimePage.read(after)
    rows = await parts.database.rows(
        bearer, queries.FAULTS, bearer.tenant, pool, node, state, place.at, place.key, limit
    )
    return shown(page(rows, limit, "suspected_at", "fault_id"))


@router.post(
    "/{fault_id:path}/dismiss",
    status_code=202,
    response_model=Ticket,
    responses=refusals(400, 404, 413, 415, 422),
    openapi_extra=takes(FaultOrder, required=False),
)
async def dismiss(request: Request, fault_id: FaultId) -> Response:
    """The suspicion is seen and nothing is to be done about it."""
    return await _order(request, fault_id, DismissFault)


@router.post(
    "/{fault_id:path}/false-alarm",
    status_code=202,
    response_model=Ticket,
    responses=refusals(400, 404, 413, 415, 422),
    openapi_extra=takes(FaultOrder, required=False),
)
async def false_alarm(request: Request, fault_id: FaultId) -> Response:
    """The worker was healthy: the detector's record says so."""
    return await _order(request, fault_id, MarkFalseAlarm)


async def _order(
    request: Request, fault_id: str, kind: type[DismissFault] | type[MarkFalseAlarm]
) -> Response:
    parts = gateway(request)
    bearer = await entered(request, "operator")
    body = checked(FaultOrder, await json_body(request))
    lane = await _lane(parts, bearer, fault_id, body.pool)
    command: Command = kind(fault_id=fault_id, reason=body.reason)
    return accepted(
        await order(request, parts, bearer, command, lane=lane, subject=fault_id, span="fault")
    )


async def _lane(parts: Gateway, bearer: Bearer, fault_id: str, pool: str | None) -> int:
    """As told, or as Postgres knows."""
    if pool is not None:
        return lane_of_pool(parts, pool)
    row = await parts.database.row(bearer, queries.LANE_OF_FAULT, fault_id)
    if row is None:
        raise not_found("fault")
    return int(str(row["partition"]))
