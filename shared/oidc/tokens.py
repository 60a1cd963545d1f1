"""Verifies OIDC bearer tokens; a token that differs from the configuration is rejected."""

from __future__ import annotations

from dataclasses import dataclass

import jwt

from shared.contracts.registry import Bearer
from shared.oidc.claims import ClaimRules, bearer_of
from shared.oidc.key_set import ALGORITHMS, KeySet

MAX_CHARS = 8 * 1024
MAX_KID_CHARS = 256
KNOWN_HEADERS = frozenset({"alg", "kid", "typ"})
"""Other headers could name the source of the key (`jku`, `x5u`, `jwk`, `x5c`) or extensions that
must be understood (`crit`)."""
TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})


class BadToken(Exception):
    """The token is invalid; the text quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Accepted issuer, audience, clock difference and claims."""

    issuer: str
    audience: str
    leeway_s: float
    claims: ClaimRules


def is_token(text: str) -> bool:
    """True for base64 of `{"`; an API key begins with its id, which has no capitals."""
    return text.startswith("eyJ")


async def verify_token(token: str, rules: TokenRules, keys: KeySet) -> Bearer:
    """Return the bearer of a verified token; raises BadToken, BadClaims or KeysUnavailable."""
    algorithm, kid = _header(token)
    key = await keys.key(kid)
    if key is None:
        raise BadToken("kid: unknown key of the issuer")
    if key.algorithm_name != algorithm:
        raise BadToken("alg: differs from the key's algorithm")
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
        raise BadToken(_REASONS.get(type(error), "signature: invalid")) from None
    return bearer_of(claims, rules.claims)


def _header(token: str) -> tuple[str, str]:
    """Return algorithm and key id of the token."""
    if len(token) > MAX_CHARS:
        raise BadToken(f"longer than {MAX_CHARS} characters")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, RecursionError):
        raise BadToken("not a signed token") from None
    if unknown := sorted(set(header) - KNOWN_HEADERS):
        # A lone surrogate cannot be encoded.
        name = unknown[0][:32] if unknown[0].isprintable() else "header"
        raise BadToken(f"{name}: header not allowed")
    algorithm, kid, typ = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if algorithm not in ALGORITHMS.values():
        raise BadToken("alg: must be RS256 or ES256")
    if not isinstance(typ, str) or typ.lower() not in TYPES:
        raise BadToken("typ: must be JWT or at+jwt")
    if not isinstance(kid, str) or not 0 < len(kid) <= MAX_KID_CHARS:
        raise BadToken("kid: missing or too long")
    return str(algorithm), kid


_REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: "exp: token expired",
    jwt.ImmatureSignatureError: "nbf or iat: token not valid yet",
    jwt.InvalidIssuedAtError: "iat: not a time",
    jwt.InvalidAudienceError: "aud: not the configured audience",
    jwt.InvalidIssuerError: "iss: not the configured issuer",
    jwt.MissingRequiredClaimError: "claims exp, iss, aud and sub are required",
}
