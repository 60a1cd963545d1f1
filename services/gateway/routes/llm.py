"""LLM requests: counts and ids only, never a prompt or an answer."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import Field

from services.gateway import queries
from services.gateway.body import json_body
from services.gateway.core.faults import Fault, Invalid
from services.gateway.core.strict import checked
from services.gateway.core.submission import refuse_other_tenant
from services.gateway.docs import refusals, takes
from services.gateway.entry import entered
from services.gateway.orders import LLM_REQUESTS, Ticket, accepted, order, shown
from services.gateway.paging import Limit, TimePage, TimeToken, page
from services.gateway.parts import gateway
from services.gateway.routes.jobs import sender_of
from shared.contracts.base import Model, Name
from shared.contracts.llm import ServeLlmRequest

router = APIRouter(prefix="/v1/llm", tags=["llm"])


class LlmOrder(Model):
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
    response_model=Ticket,
    responses=refusals(400, 413, 415, 422),
    openapi_extra=takes(LlmOrder),
)
async def serve(request: Request) -> Response:
    """Ask an endpoint to serve a request; throttle decides when."""
    parts = gateway(request)
    bearer = await entered(request, "submitter")
    body = checked(LlmOrder, await json_body(request))
    sender = sender_of(parts.access, bearer, body.tenant)
    refuse_other_tenant(body.tenant, sender)
    endpoint = parts.access.view.endpoint(body.endpoint)
    if endpoint is None:
        fault = Fault(field="endpoint", value=body.endpoint, rule="no such endpoint")
        raise Invalid([fault])
    command = ServeLlmRequest(**{**body.model_dump(), "tenant": sender.tenant})
    return accepted(
        await order(
            request,
            parts,
            bearer,
            command,
            topic=LLM_REQUESTS,
            lane=endpoint.partition,
            subject=body.request_id,
            span="llm",
        )
    )


@router.get("/requests", responses=refusals(422))
async def list_requests(request: Request, after: TimeToken = None, limit: Limit = 100) -> Response:
    """LLM requests, the youngest first."""
    parts = gateway(request)
    bearer = await entered(request, "viewer")
    place = TimePage.read(after)
    rows = await parts.database.rows(
        bearer, queries.LLM_REQUESTS, bearer.tenant, place.at, place.key, limit
    )
    return shown(page(rows, limit, "queued_at", "request_id"))
