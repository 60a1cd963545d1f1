"""The bounds of the submissions of a tenant and its users, alike by REST and as an event."""

from __future__ import annotations

from services.admission.core.state import AdmissionState, Owner
from services.admission.core.verdict import Reject
from shared.contracts.bounds import Excess, JobBounds, TenantBounds, bounds_in_force, find_excess
from shared.contracts.job_commands import SubmitJob

REASONS = {
    "pools": "pool_not_allowed",
    "highest_class": "class_not_allowed",
    "max_open_jobs": "too_many_jobs",
    "max_request_bytes": "too_large",
}
"""Reasons by bound; of the others it is `above_bound`."""
FOR_NOW = frozenset({"max_open_jobs"})
"""Bounds that a submission exceeds until other jobs have ended."""


def check_bounds(state: AdmissionState, command: SubmitJob, body_bytes: int) -> Reject | None:
    """Return why tenant or user may not submit this: field, value, rule and who can change it.

    A job that comes from another pool was accepted there, and is in no queue until it is here.
    """
    if command.spec.transferred is not None:
        return None
    tenant, user = command.tenant, command.spec.user
    open_jobs = state.open_jobs.get(tenant, 0)
    if excess := find_any(bounds_of(state, tenant), command, body_bytes, open_jobs):
        return rejection(excess, f"tenant {tenant}", f"berth tenants set {tenant}")
    bounds = state.users.get(tenant, {}).get(user)
    if bounds is None:
        return None
    open_jobs = state.open_jobs_of_users.get(Owner(tenant, user), 0)
    if excess := find_any(bounds, command, body_bytes, open_jobs):
        verb = f"berth users set {user} --tenant {tenant}"
        return rejection(excess, f"user {user} of {tenant}", verb)
    return None


def find_any(
    bounds: JobBounds, command: SubmitJob, body_bytes: int, open_jobs: int
) -> Excess | None:
    """Return the first bound that the submission exceeds, beside so many open jobs in the pool."""
    for pool in command.spec.pools or (command.pool,):
        excess = find_excess(bounds, command.spec, pool, by_operator=command.by_operator)
        if excess is not None:
            return excess
    if body_bytes > bounds.max_request_bytes:
        rule = f"at most {bounds.max_request_bytes} bytes"
        return Excess(
            setting="max_request_bytes", field="spec", value=f"{body_bytes} bytes", rule=rule
        )
    if open_jobs + command.array_size > bounds.max_open_jobs:
        rule = f"{open_jobs} jobs wait or run in the pool, at most {bounds.max_open_jobs} may"
        return Excess(
            setting="max_open_jobs", field="array_size", value=str(command.array_size), rule=rule
        )
    return None


def bounds_of(state: AdmissionState, tenant: str) -> TenantBounds:
    """Return the bounds of a tenant."""
    noted = state.tenants.get(tenant)
    return bounds_in_force(noted.bounds if noted else None)


def rejection(excess: Excess, of: str, verb: str) -> Reject:
    setting = excess.setting
    remedy = f"an administrator changes it: `{verb} {setting}=...`"
    detail = f"{excess.field}: {excess.value!r}: {excess.rule} for {of}; {remedy}"
    return Reject(REASONS.get(setting, "above_bound"), detail, setting not in FOR_NOW)
