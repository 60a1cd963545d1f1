"""LLM requests: counts and ids, never prompts or answers."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from berth_client import answers
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.llm_submission import MOST_BODY_BYTES, LlmSubmission, serve_request
from services.gateway.core.strict import parse_body
from services.gateway.reads.llm_queries import LLM_REQUEST
from services.gateway.reads.llm_queries import LLM_REQUESTS as LLM_REQUESTS_OF
from services.gateway.reads.paging import Limit, TimeCursor, TimeToken, page_of
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import (
    LLM_REQUESTS,
    accepted_response,
    command_route,
    json_response,
    send_command,
)
from services.gateway.requests.filters import check_tenant as check_known_tenant
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.routes.submissions import sender_for
from services.gateway.wiring import gateway_of
from shared.contracts.base import Name
from shared.contracts.endpoints import ModelName

router = APIRouter(prefix="/v1/llm", tags=["llm"])


@router.post("/requests", **command_route(LlmSubmission))
async def submit_request(request: Request) -> Response:
    """Queue a request at an endpoint; throttle decides when it is served."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "submitter")
    body = parse_body(LlmSubmission, await json_body(request, MOST_BODY_BYTES))
    sender = sender_for(gateway.access, bearer, body.tenant)
    endpoint = gateway.access.view.endpoint(body.endpoint)
    if endpoint is None or not bearer.may_call(body.endpoint, endpoint):
        error = FieldError(
            field="endpoint",
            value=body.endpoint,
            rule="no such endpoint, or the key may not call it; GET /v1/endpoints lists them",
        )
        raise InvalidBody([error])
    command = serve_request(body, sender, endpoint)
    return accepted_response(
        await send_command(
            request,
            gateway,
            bearer,
            command,
            topic=LLM_REQUESTS,
            lane=endpoint.partition,
            subject=body.request_id,
            span="llm",
        )
    )


Text256 = Annotated[str | None, Query(max_length=256, pattern=r"^[^\x00]*$")]
State = Literal["queued", "running", "finished", "rejected"]


@router.get("/requests", **read_route(answers.Page[answers.LlmRequest], 404, 422))
async def list_requests(
    request: Request,
    endpoint: Annotated[ModelName | None, Query(description="only this endpoint")] = None,
    state: Annotated[State | None, Query(description="only this state")] = None,
    user: Text256 = None,
    application: Annotated[Name | None, Query(description="only this application")] = None,
    tenant: Annotated[Name | None, Query(description="only this tenant")] = None,
    after: TimeToken = None,
    limit: Limit = 100,
) -> Response:
    """List LLM requests, newest first; those that ended are kept for 30 days."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    if bearer.tenant is not None and tenant not in (None, bearer.tenant):
        raise not_found("tenant")
    check_known_tenant(gateway, tenant)
    cursor = TimeCursor.read(after)
    values = (endpoint, state, user, application, cursor.at, cursor.key, limit)
    rows = await gateway.database.rows(bearer, LLM_REQUESTS_OF, bearer.tenant or tenant, *values)
    return json_response(page_of(rows, limit, "queued_at", "request_id"))


@router.get("/requests/{request_id}", **read_route(answers.LlmRequest, 404, 422))
async def show_request(
    request: Request,
    request_id: Annotated[
        str, Path(max_length=64, pattern=r"^[A-Za-z0-9._:-]+$", description="id of the request")
    ],
    tenant: Annotated[Name | None, Query(description="its tenant, if several used the id")] = None,
) -> Response:
    """Show an LLM request: its wait, how it ended, and what was charged."""
    bearer = await authorize(request, "viewer")
    row = await gateway_of(request).database.row(
        bearer, LLM_REQUEST, bearer.tenant, request_id, tenant
    )
    if row is None:
        raise not_found("request")
    return json_response(row)
