"""Jobs name their pools: one that the job could not run in is refused before it waits anywhere."""

from __future__ import annotations

from collections.abc import Mapping

from services.gateway.core.field_errors import FieldError, InvalidBody
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.pool_rules import pool_violation
from shared.contracts.pools import PoolConfigured

OF_BERTH = "must be absent: Berth sets it when a job is transferred"


def with_pools(spec: JobSpec, pool: str | None, array_size: int) -> tuple[JobSpec, str | None]:
    """Return the specification with its first pool in front, and that pool; None: the default.

    Raises InvalidBody.
    """
    if spec.transferred is not None:
        raise InvalidBody([FieldError(field="transferred", rule=OF_BERTH)])
    if not spec.pools:
        return spec.model_copy(update={"pools": None}) if spec.pools == () else spec, pool
    first = pool or spec.pools[0]
    named = ", ".join(spec.pools)
    if first not in spec.pools or len(set(spec.pools)) < len(spec.pools):
        rule = f"must be different pools, and {first} one of them"
        raise InvalidBody([FieldError(field="pools", value=named, rule=rule)])
    if array_size > 1:
        rule = "must be absent for an array, whose jobs are counted in one pool"
        raise InvalidBody([FieldError(field="pools", value=named, rule=rule)])
    pools = (first, *(name for name in spec.pools if name != first))
    return spec.model_copy(update={"pools": pools if len(pools) > 1 else None}), first


def check_pools(command: SubmitJob, pools: Mapping[str, PoolConfigured]) -> None:
    """Raise InvalidBody for another pool that does not exist, or would reject the job."""
    for name in command.spec.pools or ():
        pool = pools.get(name)
        if name != command.pool and (rule := violation(command.spec, command.tenant, pool)):
            raise InvalidBody([FieldError(field="pools", value=name, rule=rule)])


def other_pools(
    spec: JobSpec, tenant: str, pool: str, pools: Mapping[str, PoolConfigured]
) -> dict[str, str | None]:
    """Return the other pools of a job in its order, each with why it cannot run there, or None.

    `spec` is that of read models, which has no command: the gateway looked at it when it came.
    """
    known = spec.model_copy(update={"command": ("known",)})
    return {
        name: violation(known, tenant, pools.get(name)) for name in spec.pools or () if name != pool
    }


def violation(spec: JobSpec, tenant: str, pool: PoolConfigured | None) -> str | None:
    """Return why a tenant's job cannot run in a pool; None if it can."""
    if pool is None:
        return "no such pool; `berth pools list` shows them"
    if not pool.is_open_to(tenant):
        return f"tenant {tenant!r} is not in the pool's setting `tenants`"
    return pool_violation(spec, pool)
