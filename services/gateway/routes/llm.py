"""LLM requests: counts and ids only, never a prompt or an answer."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import Field

from services.gateway import queries
from services.gateway.authorization import authorize
from services.gateway.body import json_body
from services.gateway.commands import (
    LLM_REQUESTS,
    CommandReceipt,
    accepted_response,
    json_response,
    send_command,
)
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import parse_body
from services.gateway.core.submission import check_tenant
from services.gateway.openapi import problem_responses, request_body
from services.gateway.paging import Limit, TimeCursor, TimeToken, page_of
from services.gateway.routes.jobs import sender_for
from services.gateway.wiring import gateway_of
from shared.contracts.base import Model, Name
from shared.contracts.llm import ServeLlmRequest

router = APIRouter(prefix="/v1/llm", tags=["llm"])


class LlmSubmission(Model):
    """One request of an application."""

    request_id: str = Field(
        min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._:-]+$", description="the sender's own"
    )
    tenant: Name | None = Field(None, description="whose; must be the sender's own")
    endpoint: Name = Field(description="a group of engine replicas")
    application: Name = Field("default", description="which of the tenant's applications")
    interaction: str = Field("", max_length=64, description="the conversation it belongs to")
    prompt_tokens: int = Field(ge=1, le=10_000_000, description="tokens of the prompt")
    max_output_tokens: int = Field(ge=1, le=10_000_000, description="most tokens of the answer")


@router.post(
    "/requests",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(400, 413, 415, 422),
    openapi_extra=request_body(LlmSubmission),
)
async def serve(request: Request) -> Response:
    """Ask an endpoint to serve a request; throttle decides when."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "submitter")
    body = parse_body(LlmSubmission, await json_body(request))
    sender = sender_for(gateway.access, bearer, body.tenant)
    check_tenant(body.tenant, sender)
    endpoint = gateway.access.view.endpoint(body.endpoint)
    if endpoint is None:
        fault = FieldError(field="endpoint", value=body.endpoint, rule="no such endpoint")
        raise InvalidBody([fault])
    command = ServeLlmRequest(**{**body.model_dump(), "tenant": sender.tenant})
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


@router.get("/requests", responses=problem_responses(422))
async def list_requests(request: Request, after: TimeToken = None, limit: Limit = 100) -> Response:
    """LLM requests, the youngest first."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    place = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.LLM_REQUESTS, bearer.tenant, place.at, place.key, limit
    )
    return json_response(page_of(rows, limit, "queued_at", "request_id"))
