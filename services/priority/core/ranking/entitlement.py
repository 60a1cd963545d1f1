"""Entitled jobs: the best ones of each tenant, up to a part of its fair share of the GPUs.

They go before all other jobs of their class, so that the short jobs of one tenant do not keep the
long ones of another off the pool. Within a tenant the order stays as the policy has it; a tenant
that is alone has no entitled jobs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from services.priority.core.folding import SPOT_TIER
from services.priority.core.history.distributions import Floats
from services.priority.core.policies.keys import LIFT
from services.priority.core.queue.queue_view import QueueView
from services.priority.core.queue.table import Rows
from services.priority.core.state import PriorityState
from shared.contracts.pools import PoolConfigured


def lift_entitled(
    queue: PriorityState, pool: PoolConfigured, view: QueueView, scores: Floats
) -> Floats:
    """Return the scores [n], those of entitled jobs higher than all others."""
    weights = [queue.weights.get(tenant, 1.0) for tenant in queue.tenants]
    entitled = entitled_jobs(view, scores, np.array(weights), pool)
    lifted = scores.copy()
    lifted[entitled] += LIFT
    return lifted


def entitled_jobs(view: QueueView, scores: Floats, weights: Floats, pool: PoolConfigured) -> Rows:
    """Return the places of the entitled jobs; `weights` are by the number of the tenant.

    A tenant's jobs are taken best first, while together they have no more GPUs than it is entitled
    to: `tenant_floor` of its share by weight among the tenants with jobs. The first one is taken
    whatever its size. A waiting job has to be better by the margin than a running one, as if it
    stopped it. Spot jobs do not count.
    """
    places = np.flatnonzero(view.tier < SPOT_TIER)
    tenants = np.unique(view.tenant[places])
    if len(tenants) < 2:
        return places[:0]
    total = weights[tenants].sum()
    limit = pool.tenant_floor * view.capacity_gpus * weights / total
    own = scores + np.where(view.running, pool.preempt_margin, 0.0)
    columns = (view.submit_s, -own, view.tier, view.tenant)
    places = places[np.lexsort([column[places] for column in columns])]
    tenant, gpus = view.tenant[places], view.gpus[places]
    bounds = [0, *(np.flatnonzero(np.diff(tenant)) + 1).tolist(), len(places)]
    taken = np.concatenate([np.cumsum(gpus[low:high]) for low, high in pairwise(bounds)])
    is_first = np.concatenate(([True], tenant[1:] != tenant[:-1]))
    entitled: Rows = places[is_first | (taken <= limit[tenant])]
    return entitled
