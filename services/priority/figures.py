"""Metrics of priority's state, for dashboards and alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from services.priority.core.decide import pause_ms
from services.priority.core.policies.fair_share import used_gpu_s
from services.priority.core.state import PriorityState
from shared.contracts.base import Millis
from shared.telemetry.figures import Figure

TENANTS_MOST = 50
"""Limit of a label's values: beyond it the tenants that used most are shown."""


def figures(queue: PriorityState, now: Millis) -> Iterator[Figure]:
    """Yield the figures of one lane; none of a lane without a pool."""
    if queue.pool is None:
        return
    label = (queue.name,)
    use = shares(used_gpu_s(queue, now))
    weight = shares({name: queue.weights.get(name, 1.0) for name in queue.tenants})
    for tenant in sorted(use, key=lambda name: (-use[name], name))[:TENANTS_MOST]:
        yield Figure("berth_tenant_use_ratio", use[tenant], (*label, tenant))
        yield Figure("berth_tenant_weight_ratio", weight.get(tenant, 0.0), (*label, tenant))
    yield Figure("berth_fairness_gap_ratio", fairness_gap(queue, use), label)
    yield Figure("berth_policies_degraded", len(queue.degraded), label)
    is_due = bool(queue.waiting and queue.ranked_at) and pause_ms(queue, queue.pool) is not None
    age_ms = now - queue.ranked_at if is_due else 0
    yield Figure("berth_order_age_seconds", max(0, age_ms) / 1000, label)


def shares(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return each amount over their sum."""
    total = sum(amounts.values())
    return {name: amount / total if total else 0.0 for name, amount in amounts.items()}


def fairness_gap(queue: PriorityState, use: Mapping[str, float]) -> float:
    """Return the greatest excess of a tenant's use over its fair share, among those with jobs."""
    active = {job.tenant for job in queue.jobs.values()}
    weight = shares({name: queue.weights.get(name, 1.0) for name in active})
    used = shares({name: use.get(name, 0.0) for name in active})
    return max((used[name] - weight[name] for name in active), default=0.0)
