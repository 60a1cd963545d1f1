"""LLM requests: counts and ids, never prompts or answers."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import Field

from services.gateway import queries
from services.gateway.authorization import authorize
from services.gateway.body import json_body
from services.gateway.commands import (
    LLM_REQUESTS,
    accepted_response,
    command_route,
    json_response,
    send_command,
)
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import parse_body
from services.gateway.core.submission import check_tenant
from services.gateway.openapi import problem_responses
from services.gateway.paging import Limit, TimeCursor, TimeToken, page_of
from services.gateway.routes.submissions import sender_for
from services.gateway.wiring import gateway_of
from shared.contracts.base import Model, Name
from shared.contracts.llm import ServeLlmRequest

router = APIRouter(prefix="/v1/llm", tags=["llm"])


class LlmSubmission(Model):
    """An LLM request of an application."""

    request_id: str = Field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9._:-]+$",
        description="id chosen by the sender",
    )
    tenant: Name | None = Field(None, description="tenant; must be the sender's own")
    endpoint: Name = Field(description="group of engine replicas")
    application: Name = Field("default", description="application of the tenant")
    interaction: str = Field("", max_length=64, description="conversation of the request")
    prompt_tokens: int = Field(ge=1, le=10_000_000, description="tokens of the prompt")
    max_output_tokens: int = Field(ge=1, le=10_000_000, description="maximum tokens of the answer")


@router.post("/requests", **command_route(LlmSubmission))
async def submit_request(request: Request) -> Response:
    """Queue a request at an endpoint; throttle decides when it is served."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "submitter")
    body = parse_body(LlmSubmission, await json_body(request))
    sender = sender_for(gateway.access, bearer, body.tenant)
    check_tenant(body.tenant, sender)
    endpoint = gateway.access.view.endpoint(body.endpoint)
    if endpoint is None:
        error = FieldError(field="endpoint", value=body.endpoint, rule="no such endpoint")
        raise InvalidBody([error])
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
    """List LLM requests, newest first."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    cursor = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.LLM_REQUESTS, bearer.tenant, cursor.at, cursor.key, limit
    )
    return json_response(page_of(rows, limit, "queued_at", "request_id"))
