"""Who enters by which route: the one place where a request's sender is asked for."""

from __future__ import annotations

from fastapi import Request

from services.gateway.parts import gateway
from services.gateway.problem import Forbidden, unauthenticated
from shared.contracts.access import Role
from shared.contracts.registry import Bearer


async def entered(request: Request, at_least: Role) -> Bearer:
    """Raises a 401, 403 or 503 Refusal."""
    told = request.headers.getlist("authorization")
    if len(told) > 1:
        raise unauthenticated("send one Authorization header")
    try:
        bearer = await gateway(request).access.bearer(told[0] if told else None, at_least)
    except Forbidden as refusal:
        request.state.principal = refusal.bearer.principal
        raise
    request.state.principal = bearer.principal
    return bearer
