"""Changes of named settings, as commands that the release which runs access can read.

Until `berth upgrade finish` the release before may take over again, and reads whole settings alone.
"""

from __future__ import annotations

from typing import Any

from services.gateway.responses.problem import ApiError
from shared.contracts.access import RegisterTenant
from shared.contracts.base import Model
from shared.contracts.bounds import TenantBounds
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured
from shared.contracts.pools import ConfigurePool, PoolConfigured
from shared.contracts.registry import AccessView
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateEndpoint, UpdatePool, UpdateTenant

NOT_FINISHED = "is possible after `berth upgrade finish`; until then"
WHOLE = "POST all that it had"


def require_finished(
    view: AccessView, change: str = "a change of single fields", instead: str = WHOLE
) -> None:
    """Raise ApiError 409 while the release before could not read it."""
    if not view.is_finished:
        raise ApiError(409, "upgrade_not_finished", f"{change} {NOT_FINISHED} {instead}")


def pool_command(view: AccessView, update: UpdatePool) -> UpdatePool | ConfigurePool:
    """Return the command that changes a pool; a whole one names the version it is based on.

    Raises ApiError for an unknown pool, and for a value that an earlier release cannot read.
    """
    if view.is_finished:
        return update
    existing = view.pools.get(update.pool)
    if existing is None:
        raise ApiError(422, "unknown_pool", f"no such pool: {update.pool}")
    if early := update.early_setting(existing):
        raise ApiError(409, "upgrade_not_finished", early)
    body = whole(ConfigurePool, existing, update.changes_of(existing), update.if_version)
    return ConfigurePool(**body)


def endpoint_command(
    view: AccessView, update: UpdateEndpoint
) -> UpdateEndpoint | ConfigureEndpoint:
    """Return the command that changes an endpoint, as `pool_command` does."""
    if view.is_finished:
        return update
    existing = view.endpoints.get(update.endpoint)
    if existing is None:
        raise ApiError(422, "unknown_endpoint", f"no such endpoint: {update.endpoint}")
    body = whole(ConfigureEndpoint, existing, update.changes(), update.if_version)
    return ConfigureEndpoint(**body)


def tenant_command(view: AccessView, command: RegisterTenant) -> RegisterTenant | UpdateTenant:
    """Return the command that registers a tenant, or changes what is named of one that exists.

    Raises ApiError 409 for a bound that an earlier release cannot read.
    """
    if command.model_fields_set & TenantBounds.model_fields.keys():
        require_finished(view, "a bound")
    if not view.is_finished or not view.is_active(command.tenant):
        return command
    return UpdateTenant.model_validate(command.model_dump(exclude_unset=True))


def whole(
    kind: type[Model],
    existing: PoolConfigured | EndpointConfigured,
    changes: dict[str, Any],
    if_version: str | None,
) -> dict[str, Any]:
    """Return all settings after the changes, based on the version that this gateway has read."""
    settings = existing.model_dump(include=set(kind.model_fields))
    return {**settings, **changes, "if_version": if_version or version_of(existing)}
