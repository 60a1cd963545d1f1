"""Who enters by which route: the one place where a request's sender is asked for."""

from __future__ import annotations

from time import monotonic_ns

from fastapi import Request

from services.gateway.core.rate import NS
from services.gateway.problem import ApiError, ForbiddenError, rate_limited, unauthenticated
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.access import Role
from shared.contracts.registry import Bearer

READS = ("GET", "HEAD")
RECORDED = "this is a recorded simulation: it can be read, and nothing in it can be changed"


async def authorize(request: Request, at_least: Role) -> Bearer:
    """Raises a 401, 403, 429 or 503 Refusal; for what would change a recorded simulation a 409."""
    told = request.headers.getlist("authorization")
    if len(told) > 1:
        raise unauthenticated("send one Authorization header")
    try:
        bearer = await gateway_of(request).access.bearer(told[0] if told else None, at_least)
    except ForbiddenError as refusal:
        request.state.principal = refusal.bearer.principal
        raise
    request.state.principal = bearer.principal
    _pay(gateway_of(request), bearer)
    if gateway_of(request).settings.recorded and request.method not in READS:
        raise ApiError(409, "recorded_simulation", RECORDED)
    return bearer


def _pay(gateway: Gateway, bearer: Bearer) -> None:
    """Of a tenant's bucket; operators have none."""
    if bearer.tenant is None:
        return
    if wait_ns := gateway.buckets.take(bearer.tenant, monotonic_ns()):
        gateway.telemetry.metrics.rate_limited.labels(bearer.tenant).inc()
        raise rate_limited(bearer.tenant, gateway.buckets.rate, wait_ns / NS)
