"""The bearer of a request, and the endpoint that it may call."""

from __future__ import annotations

from aiohttp import web

from services.throttle.relay.errors import ErrorAnswer, refuse
from shared.bus.hosting.access import AccessFollower
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.keys import parse_bearer
from shared.contracts.registry import Bearer
from shared.oidc.claims import BadClaims
from shared.oidc.key_set import KeySet, KeysUnavailable
from shared.oidc.tokens import BadToken, TokenRules, is_token, verify_token

CHALLENGE = {"www-authenticate": "Bearer"}


class Authenticator:
    """Authenticates API keys, and tokens of an OIDC provider where `rules` accept them."""

    def __init__(
        self, access: AccessFollower, rules: TokenRules | None = None, keys: KeySet | None = None
    ) -> None:
        self.access = access
        self._rules = rules
        self._keys = keys

    async def authenticate(self, request: web.BaseRequest) -> Bearer:
        """Return the bearer of the request, which belongs to a tenant. Raises ErrorAnswer."""
        values = request.headers.getall("authorization", [])
        if len(values) > 1:
            raise refuse("invalid_api_key", f"{len(values)} authorization headers; send one")
        if not values:
            text = "authorization: missing; 'Bearer KEY' with an API key of a tenant is required"
            raise refuse("invalid_api_key", text, headers=CHALLENGE)
        text = parse_bearer(values[0])
        if self._rules is not None and self._keys is not None and is_token(text):
            bearer = await self._verified(text, self._rules, self._keys)
        else:
            bearer = await self._of_key(text)
        if bearer.tenant is None or not bearer.has_role("submitter"):
            raise refuse("not_allowed", "role submitter of a tenant is required")
        return bearer

    def check_again(self, bearer: Bearer) -> None:
        """Raise ErrorAnswer where the key was revoked since: its request waited meanwhile."""
        if bearer.expires_s is None and bearer.key_id in self.access.view.revoked:
            text = "API key: was revoked while the request waited"
            raise refuse("invalid_api_key", text, headers=CHALLENGE)

    async def _of_key(self, text: str) -> Bearer:
        bearer = await self.access.authenticate(text)
        if bearer is None:
            raise refuse("invalid_api_key", "invalid API key", headers=CHALLENGE)
        return bearer

    async def _verified(self, text: str, rules: TokenRules, keys: KeySet) -> Bearer:
        try:
            return await verify_token(text, rules, keys)
        except BadToken as error:
            raise refuse("invalid_api_key", f"token: {error}", headers=CHALLENGE) from None
        except BadClaims as error:
            raise refuse("not_allowed", f"token: {error}") from None
        except KeysUnavailable as error:
            raise refuse("endpoint_unavailable", str(error), retry_after_s=5.0) from None


async def find_endpoint(access: AccessFollower, bearer: Bearer, model: str) -> EndpointConfigured:
    """Return the endpoint of a model, also of one created a moment ago. Raises ErrorAnswer.

    A model that the bearer may not call does not exist for it.
    """
    endpoint = access.view.endpoint(model)
    if endpoint is None:
        await access.catch_up()
        endpoint = access.view.endpoint(model)
    if endpoint is None or not bearer.may_call(model, endpoint):
        raise no_model(model)
    return endpoint


def no_model(name: str) -> ErrorAnswer:
    text = f"model: {name[:128]!r}; an endpoint that the key may call, as `GET /v1/models` lists"
    return refuse("model_not_found", f"{text} them, is required", param="model")


def visible_models(access: AccessFollower, bearer: Bearer) -> list[str]:
    """Return the names of the models that the bearer may call, in order."""
    return sorted(
        model
        for endpoint in access.view.endpoints.values()
        for model in endpoint.models
        if bearer.may_call(model, endpoint)
    )
