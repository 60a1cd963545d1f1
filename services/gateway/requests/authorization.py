"""Authorizes requests: the one place where routes obtain the bearer."""

from __future__ import annotations

from time import monotonic_ns
from typing import TypeVar

from fastapi import Request

from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import parse_body
from services.gateway.requests.body import json_body
from services.gateway.responses.problem import (
    ApiError,
    ForbiddenError,
    limited,
    rate_limited,
    unauthenticated,
)
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.access import Role
from shared.contracts.base import Model
from shared.contracts.registry import Bearer
from shared.http.rate import NS, TokenBuckets

M = TypeVar("M", bound=Model)

READS = ("GET", "HEAD")
RECORDED = "recorded simulation is read-only; only GET and HEAD are allowed"


async def authorize(request: Request, at_least: Role) -> Bearer:
    """Return the bearer of the request.

    Raises an ApiError with 401, 403, 429 or 503, and with 409 for a change of a recorded
    simulation.
    """
    headers = request.headers.getlist("authorization")
    if len(headers) > 1:
        raise unauthenticated(f"{len(headers)} Authorization headers; send one")
    try:
        bearer = await gateway_of(request).access.bearer(headers[0] if headers else None, at_least)
    except ForbiddenError as error:
        request.state.principal = error.bearer.principal
        raise
    request.state.principal = bearer.principal
    gateway = gateway_of(request)
    charge(gateway, bearer, gateway.buckets)
    if gateway.settings.recorded and request.method not in READS:
        raise ApiError(409, "recorded_simulation", RECORDED)
    return bearer


def charge(gateway: Gateway, bearer: Bearer, buckets: TokenBuckets, kind: str = "") -> None:
    """Take one token of the tenant's bucket; operators have none. Raises ApiError 429.

    `kind` says what the buckets limit, such as "terminals", where it is not every request.
    """
    if bearer.tenant is None:
        return
    if wait_ns := buckets.take(bearer.tenant, monotonic_ns()):
        gateway.telemetry.metrics.rate_limited.labels(bearer.tenant).inc()
        wait_s = wait_ns / NS
        if kind:
            raise limited(f"{kind} of tenant {bearer.tenant}", buckets.rate, wait_s)
        raise rate_limited(bearer.tenant, buckets.rate, wait_s)


async def admin_request(request: Request, kind: type[M]) -> tuple[Bearer, M]:
    """Return the admin that sends the request, and its body."""
    bearer = await authorize(request, "admin")
    return bearer, parse_body(kind, await json_body(request))


async def update_request(
    request: Request, kind: type[M], at_least: Role = "admin", **of: str
) -> tuple[Bearer, M]:
    """Return the sender of a change, and its body with what the path names: one name in both.

    A request without a body would change nothing: ApiError 400.
    """
    bearer = await authorize(request, at_least)
    body = await json_body(request, required=True)
    for name, value in of.items():
        if body.setdefault(name, value) != value:
            rule = f"the path names {value}"
            raise InvalidBody([FieldError(field=name, value=str(body[name])[:64], rule=rule)])
    return bearer, parse_body(kind, body)
