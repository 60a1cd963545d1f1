"""Who enters by which route: the one place where a request's sender is asked for."""

from __future__ import annotations

from time import monotonic_ns

from fastapi import Request

from services.gateway.core.rate import NS
from services.gateway.parts import Gateway, gateway
from services.gateway.problem import Forbidden, Refusal, too_many, unauthenticated
from shared.contracts.access import Role
from shared.contracts.registry import Bearer

READS = ("GET", "HEAD")
RECORDED = "this is a recorded simulation: it can be read, and nothing in it can be changed"


async def entered(request: Request, at_least: Role) -> Bearer:
    """Raises a 401, 403, 429 or 503 Refusal; for what would change a recorded simulation a 409."""
    told = request.headers.getlist("authorization")
    if len(told) > 1:
        raise unauthenticated("send one Authorization header")
    try:
        bearer = await gateway(request).access.bearer(told[0] if told else None, at_least)
    except Forbidden as refusal:
        request.state.principal = refusal.bearer.principal
        raise
    request.state.principal = bearer.principal
    _pay(gateway(request), bearer)
    if gateway(request).settings.recorded and request.method not in READS:
        raise Refusal(409, "recorded_simulation", RECORDED)
    return bearer


def _pay(parts: Gateway, bearer: Bearer) -> None:
    """Of a tenant's bucket; operators have none."""
    if bearer.tenant is None:
        return
    if wait_ns := parts.buckets.take(bearer.tenant, monotonic_ns()):
        parts.telemetry.metrics.rate_limited.labels(bearer.tenant).inc()
        raise too_many(bearer.tenant, parts.buckets.rate, wait_ns / NS)
