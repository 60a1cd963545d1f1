"""Suspected slow workers, and what operators decide about them, which fail-slow answers."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from berth_client import answers
from services.gateway.core.strict import parse_body
from services.gateway.reads import queries
from services.gateway.reads.paging import Limit, TimeCursor, TimeToken, page_of
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import (
    accepted_response,
    command_route,
    json_response,
    lane_of_pool,
    send_command,
)
from services.gateway.requests.filters import check_node, check_pool
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import Command, Model, Name, Text
from shared.contracts.faults import DismissFault, MarkFalseAlarm
from shared.contracts.mitigation import ApproveMitigation
from shared.contracts.registry import Bearer

router = APIRouter(prefix="/v1/faults", tags=["faults"])
ID = {"max_length": 128, "pattern": r"^[A-Za-z0-9._:/-]+$"}
FaultId = Annotated[str, Path(**ID, description="id of the fault")]
PlanId = Annotated[str, Path(**ID, description="id of the plan: `job/attempt/level/count`")]
State = Literal["suspected", "cleared", "dismissed", "false_alarm"]


class FaultRequest(Model):
    """Reason, and the pool if Postgres is unavailable."""

    reason: Text = Field("", description="reason, for the record")
    pool: Name | None = Field(None, description="pool of the fault, if Postgres is unavailable")


@router.get("", **read_route(answers.Page[answers.Fault], 422))
async def list_faults(
    request: Request,
    pool: Annotated[Name | None, Query(description="only this pool")] = None,
    node: Annotated[Name | None, Query(description="only this node")] = None,
    state: Annotated[State | None, Query(description="only this state")] = None,
    after: TimeToken = None,
    limit: Limit = 100,
) -> Response:
    """List workers that were slower than their peers, newest suspicion first."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    check_pool(gateway, pool)
    cursor = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.FAULTS, bearer.tenant, pool, node, state, cursor.at, cursor.key, limit
    )
    if not rows:
        await check_node(gateway, bearer, node)
    return json_response(page_of(rows, limit, "suspected_at", "fault_id"))


@router.get("/summary", **read_route(answers.Page[answers.Mitigation], 422))
async def summarize(
    request: Request, pool: Annotated[Name | None, Query(description="only this pool")] = None
) -> Response:
    """Return per pool who applies plans, the breaker, and what faults cost and mitigation spared.

    Losses and costs are measured, in cluster s times GPUs; `avoided_gpu_s` is an estimate by the
    durations of earlier faults. Faults that are open are not in them yet.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    check_pool(gateway, pool)
    rows = await gateway.database.rows(bearer, queries.MITIGATION, bearer.tenant, pool)
    return json_response({"items": rows, "next": None})


@router.post("/{fault_id:path}/dismiss", **command_route(FaultRequest, 404, required=False))
async def dismiss(request: Request, fault_id: FaultId) -> Response:
    """Dismiss a suspicion: nothing is to be done about it."""
    return await _send_verdict(request, fault_id, DismissFault)


@router.post("/{fault_id:path}/false-alarm", **command_route(FaultRequest, 404, required=False))
async def false_alarm(request: Request, fault_id: FaultId) -> Response:
    """Mark a suspicion as a false alarm: the worker was healthy."""
    return await _send_verdict(request, fault_id, MarkFalseAlarm)


@router.post("/plans/{plan_id:path}/approve", **command_route(FaultRequest, 404, required=False))
async def approve_plan(request: Request, plan_id: PlanId) -> Response:
    """Approve a plan of mitigation: Berth carries it out, or the training framework does.

    `GET /v1/jobs/{job_id}/timeline` has the plans of a job: `mitigation.planned.v1`.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "operator")
    body = parse_body(FaultRequest, await json_body(request))
    job = (queries.LANE_OF_JOB, bearer.tenant, plan_id.partition("/")[0])
    lane = await _lane(gateway, bearer, body.pool, "job of the plan", *job)
    command = ApproveMitigation(plan_id=plan_id, reason=body.reason)
    return await _send(request, gateway, bearer, command, lane, plan_id)


async def _send_verdict(
    request: Request, fault_id: str, kind: type[DismissFault] | type[MarkFalseAlarm]
) -> Response:
    gateway = gateway_of(request)
    bearer = await authorize(request, "operator")
    body = parse_body(FaultRequest, await json_body(request))
    lane = await _lane(gateway, bearer, body.pool, "fault", queries.LANE_OF_FAULT, fault_id)
    command = kind(fault_id=fault_id, reason=body.reason)
    return await _send(request, gateway, bearer, command, lane, fault_id)


async def _send(
    request: Request, gateway: Gateway, bearer: Bearer, command: Command, lane: int, subject: str
) -> Response:
    return accepted_response(
        await send_command(
            request, gateway, bearer, command, lane=lane, subject=subject, span="fault"
        )
    )


async def _lane(
    gateway: Gateway, bearer: Bearer, pool: str | None, kind: str, query: str, *keys: str | None
) -> int:
    """Return the lane of the pool if given, else that which the query finds in Postgres."""
    if pool is not None:
        return lane_of_pool(gateway, pool)
    row = await gateway.database.row(bearer, query, *keys)
    if row is None:
        raise not_found(kind)
    return int(str(row["partition"]))
