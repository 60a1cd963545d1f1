"""Health, metrics, span ingestion and the start page."""

from __future__ import annotations

import ipaddress
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from berth_client import answers
from services.gateway.requests.body import raw_body
from services.gateway.requests.commands import json_response
from services.gateway.responses.openapi import (
    WITHOUT_KEY,
    Responses,
    answered_by,
    problem_responses,
    text_response,
)
from services.gateway.responses.problem import ApiError
from services.gateway.responses.reference import render
from services.gateway.wiring import gateway_of

router = APIRouter(tags=["probes"])
TRACES_LIMIT_BYTES = 8 * 1024 * 1024
OTLP_ANSWER: Responses = {
    200: {
        "content": {
            "application/x-protobuf": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {"type": "object"}},
        }
    }
}
"""An empty message, in the encoding of the request."""
INDEX = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Berth</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;
margin:2rem auto;padding:0 1rem}
</style>
<h1>Berth</h1><p>The control plane of a shared GPU cluster.</p><ul>
<li><a href="/docs">/docs</a>: API reference</li>
<li><a href="/openapi.json">/openapi.json</a>: OpenAPI document</li>
<li>/v1/jobs, /v1/queue, /v1/nodes, /v1/events: require a key</li>
<li><a href="/health">/health</a>, <a href="/ready">/ready</a>, <a href="/metrics">/metrics</a></li>
</ul></html>"""


@router.get("/", include_in_schema=False)
async def index() -> Response:
    return HTMLResponse(INDEX)


@router.get("/docs", include_in_schema=False)
async def reference(request: Request) -> Response:
    return HTMLResponse(render(request.app.openapi()))


@router.get("/health", openapi_extra=WITHOUT_KEY, responses=answered_by(answers.Health))
async def health() -> Response:
    """Liveness: the process answers."""
    return json_response({"status": "ok"})


@router.get(
    "/ready",
    openapi_extra=WITHOUT_KEY,
    responses={
        **answered_by(answers.Readiness),
        503: {
            "model": answers.Readiness,
            "description": "Kafka is unavailable, or access is not read yet",
        },
    },
)
async def ready(request: Request) -> Response:
    """Readiness for commands: the broker answers and keys are loaded, regardless of Postgres."""
    gateway = gateway_of(request)
    checks = {"broker": gateway.outbox.ready, "access": gateway.access.ready}
    response = json_response({**checks, "ready": all(checks.values())})
    if not all(checks.values()):
        response.status_code = 503
        response.headers["Retry-After"] = "2"
    return response


@router.get(
    "/metrics",
    openapi_extra=WITHOUT_KEY,
    response_class=Response,
    responses=text_response("text/plain"),
)
async def metrics(request: Request) -> Response:
    """Metrics in the text format of Prometheus."""
    registry = gateway_of(request).telemetry.metrics.registry
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


@router.post(
    "/v1/traces",
    openapi_extra=WITHOUT_KEY,
    response_class=Response,
    responses={**problem_responses(400, 413), **OTLP_ANSWER},
)
async def traces(request: Request) -> Response:
    """Receive OTLP/HTTP spans of other services; the most recent are kept in memory."""
    host = request.client.host if request.client else ""
    allowed = gateway_of(request).settings.spans_from
    if not _is_allowed(host, allowed):
        raise ApiError(
            403, "forbidden", f"sender not allowed; spans are accepted from {allowed} addresses"
        )
    body = await raw_body(request, TRACES_LIMIT_BYTES, encoded=True)
    media, encoding = (request.headers.get(n, "") for n in ("content-type", "content-encoding"))
    try:
        gateway_of(request).ring.ingest(body, media, encoding)
    except ValueError as error:
        raise ApiError(400, "malformed", str(error)[:200]) from None
    json = media.startswith("application/json")
    return Response(b"{}" if json else b"", media_type=media or "application/x-protobuf")


def _is_allowed(host: str, allowed: Literal["loopback", "private"]) -> bool:
    """True for an address of that kind; loopback addresses count as private ones, too."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_private if allowed == "private" else address.is_loopback
