"""Bearer tokens of an identity provider (OIDC): what is not exactly as configured opens nothing."""

from __future__ import annotations

from dataclasses import dataclass

import jwt

from services.gateway.core.claims import BadClaims, ClaimRules, bearer_of
from services.gateway.key_set import ALGORITHMS, KeySet, KeysUnavailable
from services.gateway.problem import ApiError, unauthenticated, unavailable
from shared.contracts.registry import Bearer

LONGEST = 8 * 1024
LONGEST_KID = 256
KNOWN_HEADERS = frozenset({"alg", "kid", "typ"})
"""Anything else could tell a verifier where to take its key from (`jku`, `x5u`, `jwk`, `x5c`), or
what it must understand (`crit`)."""
TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})


class BadToken(Exception):
    """Why it opens nothing; the text quotes nothing of the token."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Who issues tokens for us, and how far its clock may be off."""

    issuer: str
    audience: str
    leeway_s: float
    claims: ClaimRules


class Tokens:
    """What the identity provider says of a bearer, as this API answers."""

    def __init__(self, rules: TokenRules, keys: KeySet) -> None:
        self._rules = rules
        self._keys = keys

    async def bearer(self, token: str) -> Bearer:
        """Raises a 401, 403 or 503 Refusal."""
        try:
            return await verify_token(token, self._rules, self._keys)
        except BadToken as error:
            raise unauthenticated(f"token: {error}", of_token=True) from None
        except BadClaims as error:
            raise ApiError(403, "forbidden", f"token: {error}") from None
        except KeysUnavailable as error:
            raise unavailable("tokens_unavailable", str(error)) from None


def is_token(text: str) -> bool:
    """Base64 of `{"`: an API key begins with its id, which has no capitals."""
    return text.startswith("eyJ")


async def verify_token(token: str, rules: TokenRules, keys: KeySet) -> Bearer:
    """Raises BadToken, BadClaims, or CannotJudge while its key cannot be looked up."""
    algorithm, kid = _header(token)
    key = await keys.key(kid)
    if key is None:
        raise BadToken("kid: the issuer has no such key")
    if key.algorithm_name != algorithm:
        raise BadToken("alg: is not that of the key")
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            issuer=rules.issuer,
            audience=rules.audience,
            leeway=rules.leeway_s,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except (jwt.PyJWTError, RecursionError) as error:
        raise BadToken(_REASONS.get(type(error), "signature: does not fit")) from None
    return bearer_of(claims, rules.claims)


def _header(token: str) -> tuple[str, str]:
    """Algorithm and key id."""
    if len(token) > LONGEST:
        raise BadToken(f"has more than {LONGEST} characters")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, RecursionError):
        raise BadToken("is no signed token") from None
    if strange := sorted(set(header) - KNOWN_HEADERS):
        # A lone surrogate could not even be said.
        name = strange[0][:32] if strange[0].isprintable() else "header"
        raise BadToken(f"{name}: no such header is taken")
    algorithm, kid, typ = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if algorithm not in ALGORITHMS.values():
        raise BadToken("alg: is none of RS256, ES256")
    if not isinstance(typ, str) or typ.lower() not in TYPES:
        raise BadToken("typ: is no access token's")
    if not isinstance(kid, str) or not 0 < len(kid) <= LONGEST_KID:
        raise BadToken("kid: is missing or too long")
    return str(algorithm), kid


_REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: "exp: is over",
    jwt.ImmatureSignatureError: "nbf or iat: is yet to come",
    jwt.InvalidIssuedAtError: "iat: is no time",
    jwt.InvalidAudienceError: "aud: is not this installation",
    jwt.InvalidIssuerError: "iss: is not whom we trust",
    jwt.MissingRequiredClaimError: "a claim of exp, iss, aud, sub is missing",
}
