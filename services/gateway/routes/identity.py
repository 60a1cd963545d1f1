"""The bearer of a key or token, as every other route sees it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from services.gateway.authorization import authorize
from services.gateway.commands import json_response
from services.gateway.openapi import problem_responses
from services.gateway.wiring import gateway_of

router = APIRouter(prefix="/v1", tags=["access"])


@router.get("/whoami", responses=problem_responses())
async def show_bearer(request: Request) -> Response:
    """Show principal, role and tenant of the bearer, and the id of the installation.

    `tenant` is null for operators and admins, `expires_at` (ms since 1970) for keys.
    """
    bearer = await authorize(request, "viewer")
    expires_s = bearer.expires_s
    return json_response(
        {
            "principal": bearer.principal,
            "role": bearer.role,
            "tenant": bearer.tenant,
            "models": list(bearer.models),
            "expires_at": None if expires_s is None else round(expires_s * 1000),
            "installation": gateway_of(request).access.view.installation,
        }
    )
