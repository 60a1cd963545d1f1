"""Maps the claims of a verified token to a bearer, by configured names alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.contracts.access import Role
from shared.contracts.registry import RANK, Bearer

MAX_SUBJECT_CHARS = 128


class BadClaims(Exception):
    """The token is genuine but grants nothing; the text names the claim, never its value."""


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Names of claims, with dots between levels, and the roles by value of the role claim.

    A value that `roles` lacks grants nothing.
    """

    tenant: str
    role: str
    roles: Mapping[str, Role]


def bearer_of(claims: Mapping[str, object], rules: ClaimRules) -> Bearer:
    """Return the bearer with the highest role that the claim names; raises BadClaims.

    Operators and admins belong to no tenant, even if the token names one.
    """
    subject, expires_s = claims.get("sub"), claims.get("exp")
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARS:
        raise BadClaims("sub: must have 1 to 128 characters")
    if not subject.isprintable():
        raise BadClaims("sub: control characters are not allowed")
    if not isinstance(expires_s, int | float):
        raise BadClaims("exp: must be a number")
    values = _texts(_claim(claims, rules.role))
    roles = [rules.roles[value] for value in values if value in rules.roles]
    if not roles:
        raise BadClaims(f"{rules.role}: no known role")
    role = max(roles, key=lambda role: RANK[role])
    if role in ("operator", "admin"):
        return Bearer(subject, role, None, float(expires_s))
    tenant = _claim(claims, rules.tenant)
    if not isinstance(tenant, str) or not tenant:
        raise BadClaims(f"{rules.tenant}: role {role} requires a tenant")
    return Bearer(subject, role, tenant, float(expires_s))


def _claim(claims: Mapping[str, object], path: str) -> object:
    """Return the value at the path; a claim with dots in its name, such as a URL, comes first."""
    if path in claims:
        return claims[path]
    value: object = claims
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            yield from (item for item in value if isinstance(item, str))
