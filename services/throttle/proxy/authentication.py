"""The bearer of a request, and the endpoint that it may call."""

from __future__ import annotations

from aiohttp import web

from services.throttle.relay.errors import refuse
from shared.bus.access import AccessFollower
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.keys import parse_bearer
from shared.contracts.registry import Bearer


async def authenticate(access: AccessFollower, request: web.Request) -> Bearer:
    """Return the bearer of the request's key, who belongs to a tenant. Raises ErrorAnswer."""
    bearer = await access.authenticate(parse_bearer(request.headers.get("authorization")))
    if bearer is None:
        headers = {"www-authenticate": "Bearer"}
        raise refuse("invalid_api_key", "invalid API key", headers=headers)
    if bearer.tenant is None or not bearer.has_role("submitter"):
        raise refuse("not_allowed", "role submitter of a tenant is required")
    return bearer


async def find_endpoint(access: AccessFollower, bearer: Bearer, model: str) -> EndpointConfigured:
    """Return the endpoint of a model, also of one created a moment ago. Raises ErrorAnswer.

    A model that the bearer may not call does not exist for it.
    """
    endpoint = access.view.endpoint(model)
    if endpoint is None:
        await access.catch_up()
        endpoint = access.view.endpoint(model)
    if endpoint is None or not bearer.may_call(model, endpoint):
        text = "model: no endpoint of this name that the key may call"
        raise refuse("model_not_found", text, param="model")
    return endpoint


def visible_models(access: AccessFollower, bearer: Bearer) -> list[str]:
    """Return the names of the models that the bearer may call, in order."""
    return sorted(
        model
        for endpoint in access.view.endpoints.values()
        for model in endpoint.models
        if bearer.may_call(model, endpoint)
    )
