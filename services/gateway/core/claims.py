"""From the claims of a token that was verified to who asks: configured names, nothing guessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.contracts.access import Role
from shared.contracts.registry import RANK, Bearer

LONGEST_SUBJECT = 128


class BadClaims(Exception):
    """The token is genuine and opens nothing here; the text names the claim, never its value."""


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Names of claims, dotted where they lie deeper, and what their values mean.

    `roles` maps a value of the role claim to a role of ours; a value that it lacks means nothing.
    """

    tenant: str
    role: str
    roles: Mapping[str, Role]


def bearer_of(claims: Mapping[str, object], rules: ClaimRules) -> Bearer:
    """Raises BadClaims. The highest role that a claim names counts; who serves all tenants has
    none, whatever the token says of one."""
    subject, expires_s = claims.get("sub"), claims.get("exp")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
        raise BadClaims("sub: has 1 to 128 characters")
    if not subject.isprintable():
        raise BadClaims("sub: may not hold control characters")
    if not isinstance(expires_s, int | float):
        raise BadClaims("exp: is no number")
    known = [
        rules.roles[each] for each in _texts(_found(claims, rules.role)) if each in rules.roles
    ]
    if not known:
        raise BadClaims(f"{rules.role}: names no role of this installation")
    role = max(known, key=lambda each: RANK[each])
    if role in ("operator", "admin"):
        return Bearer(subject, role, None, float(expires_s))
    tenant = _found(claims, rules.tenant)
    if not isinstance(tenant, str) or not tenant:
        raise BadClaims(f"{rules.tenant}: a {role} has one tenant")
    return Bearer(subject, role, tenant, float(expires_s))


def _found(claims: Mapping[str, object], path: str) -> object:
    """A claim with dots in its own name, such as a URL, goes before one that lies deeper."""
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
            yield from (each for each in value if isinstance(each, str))
