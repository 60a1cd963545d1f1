"""The bearer of a key or token, as every other route sees it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from berth_client import answers
from services.gateway.core.key_bounds import bounds_of_bearer, user_of
from services.gateway.reads.database import Row
from services.gateway.requests.authorization import authorize
from services.gateway.requests.commands import json_response
from services.gateway.responses.openapi import read_route
from services.gateway.routes.tenants import shown_bounds
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.bounds import narrowest
from shared.contracts.registry import Bearer

router = APIRouter(prefix="/v1", tags=["access"])


@router.get("/whoami", **read_route(answers.WhoAmI))
async def show_bearer(request: Request) -> Response:
    """Show principal, role and tenant of the bearer, and the id of the installation.

    `tenant` is null for operators and admins, `expires_at` (ms since 1970) for keys. `user` is
    whom its jobs belong to, null where they name one. `may` has the bounds that hold for it: those
    of the tenant, narrower where its user or key is; null for operators and admins, who have none.
    """
    bearer = await authorize(request, "viewer")
    expires_s = bearer.expires_s
    return json_response(
        {
            "principal": bearer.principal,
            "role": bearer.role,
            "tenant": bearer.tenant,
            "user": user_of(bearer),
            "models": list(bearer.models),
            "may": shown_rights(gateway_of(request), bearer),
            "expires_at": None if expires_s is None else round(expires_s * 1000),
            "installation": gateway_of(request).access.view.installation,
        }
    )


def shown_rights(gateway: Gateway, bearer: Bearer) -> Row | None:
    """Return the rights of the bearer: the narrower bounds of its tenant, its user and its key."""
    if bearer.tenant is None:
        return None
    view, bounds = gateway.access.view, gateway.access.view.bounds_of(bearer.tenant)
    of_user = view.users.bounds_of(bearer.tenant, user_of(bearer))
    within = bounds_of_bearer(bearer), of_user
    pools = tuple(
        name
        for name, pool in sorted(view.pools.items())
        if view.may_use(bearer.tenant, pool)
        and all(not narrower.pools or name in narrower.pools for narrower in within)
    )
    may = shown_bounds(gateway, narrowest(bounds, *within).model_copy(update={"pools": pools}))
    return {"submit": bearer.has_role("submitter"), **may, "max_gpus": of_user.max_gpus}
