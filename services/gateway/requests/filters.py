"""Filters of lists: a value that no row can have is an error, never an empty list."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from services.gateway.core.field_errors import MAX_VALUE_CHARS, FieldError, InvalidBody
from services.gateway.reads import queries
from services.gateway.wiring import Gateway
from shared.contracts.base import COMMANDS
from shared.contracts.codec import event_classes
from shared.contracts.registry import Bearer

NAMED = 20
"""Most values that an error lists."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def check_pool(gateway: Gateway, pool: str | None) -> None:
    """Raise InvalidBody for a pool that is not configured."""
    pools = gateway.access.pools()
    if pool is not None and pool not in pools:
        raise no_such("pool", pool, one_of(pools))


def check_tenant(gateway: Gateway, tenant: str | None) -> None:
    """Raise InvalidBody for a tenant that was never registered; a retired one has jobs."""
    tenants = gateway.access.view.tenants
    if tenant is not None and tenant not in tenants:
        raise no_such("tenant", tenant, one_of(tenants))


async def check_node(gateway: Gateway, bearer: Bearer, node: str | None) -> None:
    """Raise InvalidBody for a node that never joined; ApiError 503 without Postgres."""
    if node is not None and not await gateway.database.row(bearer, queries.LANE_OF_NODE, node):
        raise no_such("node", node, "must be a node that has joined; GET /v1/nodes lists them")


async def check_job(gateway: Gateway, bearer: Bearer, field: str, job: str | None) -> None:
    """Raise InvalidBody for a job, or stem of an array, that the bearer does not see."""
    if job is not None and not await gateway.database.row(
        bearer, queries.LANE_OF_JOB, bearer.tenant, job
    ):
        raise no_such(field, job, "must be the id of a job or an array; GET /v1/jobs lists them")


def check_types(types: Iterable[str]) -> None:
    """Raise InvalidBody for a type of no event."""
    known = event_classes()
    for name in types:
        if name not in known:
            raise no_such("types", name, f"must be types of events{_similar(name, known)}")


def check_action(action: str | None) -> None:
    """Raise InvalidBody for an action that the audit never has: it has commands and requests."""
    if action is None or action in COMMANDS or action.partition(" ")[0] in METHODS:
        return
    rule = f"must be the type of a command{_similar(action, COMMANDS)}, or method and route"
    raise no_such("action", action, rule)


def no_such(field: str, value: str, rule: str) -> InvalidBody:
    shown = value if len(value) <= MAX_VALUE_CHARS else None
    return InvalidBody([FieldError(field=field, value=shown, rule=rule)])


def one_of(names: Iterable[str]) -> str:
    """Return the rule that a value is one of these names."""
    known = sorted(names)
    if not known:
        return "no value is allowed yet: none is configured"
    more = f" or {len(known) - NAMED} others" if len(known) > NAMED else ""
    return f"must be one of {', '.join(known[:NAMED])}{more}"


def _similar(name: str, known: Iterable[str]) -> str:
    similar = get_close_matches(name, known, 3)
    return f", such as {', '.join(similar)}" if similar else ""
