"""The bounds of a tenant's submissions, alike by REST and as an event."""

from __future__ import annotations

from services.admission.core.state import AdmissionState
from services.admission.core.verdict import Reject
from shared.contracts.bounds import TenantBounds, bounds_in_force, find_excess
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
    """Return why the tenant may not submit this: field, value, rule and who can change it."""
    tenant = command.tenant
    bounds = bounds_of(state, tenant)
    for pool in command.spec.pools or (command.pool,):
        excess = find_excess(bounds, command.spec, pool, by_operator=command.by_operator)
        if excess is not None:
            return rejection(tenant, excess.setting, excess.field, repr(excess.value), excess.rule)
    if body_bytes > bounds.max_request_bytes:
        rule = f"at most {bounds.max_request_bytes} bytes"
        return rejection(tenant, "max_request_bytes", "spec", f"{body_bytes} bytes", rule)
    open_jobs = state.open_jobs.get(tenant, 0)
    if open_jobs + command.array_size > bounds.max_open_jobs:
        rule = f"{open_jobs} jobs wait or run in the pool, at most {bounds.max_open_jobs} may"
        return rejection(tenant, "max_open_jobs", "array_size", str(command.array_size), rule)
    return None


def bounds_of(state: AdmissionState, tenant: str) -> TenantBounds:
    """Return the bounds of a tenant."""
    noted = state.tenants.get(tenant)
    return bounds_in_force(noted.bounds if noted else None)


def rejection(tenant: str, setting: str, field: str, value: str, rule: str) -> Reject:
    remedy = f"an administrator changes it: `berth tenants set {tenant} {setting}=...`"
    detail = f"{field}: {value}: {rule} for tenant {tenant}; {remedy}"
    return Reject(REASONS.get(setting, "above_bound"), detail, setting not in FOR_NOW)
