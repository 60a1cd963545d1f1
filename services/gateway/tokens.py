"""Turns OIDC tokens into bearers, and their faults into errors of the API."""

from __future__ import annotations

from services.gateway.responses.problem import ApiError, unauthenticated, unavailable
from shared.contracts.registry import Bearer
from shared.oidc.claims import BadClaims
from shared.oidc.key_set import KeySet, KeysUnavailable
from shared.oidc.tokens import BadToken, TokenRules, verify_token


class Tokens:
    """Turns tokens into bearers, and their faults into errors of the API."""

    def __init__(self, rules: TokenRules, keys: KeySet) -> None:
        self._rules = rules
        self._keys = keys

    async def bearer(self, token: str) -> Bearer:
        """Return the bearer; raises ApiError 401, 403 or 503."""
        try:
            return await verify_token(token, self._rules, self._keys)
        except BadToken as error:
            raise unauthenticated(f"token: {error}", of_token=True) from None
        except BadClaims as error:
            raise ApiError(403, "forbidden", f"token: {error}") from None
        except KeysUnavailable as error:
            raise unavailable("tokens_unavailable", str(error)) from None
