"""Fair shares of the tenants of a pool, from their weights and their use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class PoolUse(NamedTuple):
    """The GPUs that a tenant holds of a pool, and its use of late."""

    gpus: float
    decayed_gpu_hours: float


class Share(NamedTuple):
    """The share of a tenant by its weight, and where it is known that of its use."""

    share: float
    entitled_gpus: float
    use_share: float | None
    factor: float | None


def shares_of(
    weights: Mapping[str, float], use: Mapping[str, PoolUse], pool_gpus: float, *, is_complete: bool
) -> dict[str, Share]:
    """Return the share of each tenant by name; `is_complete`: `use` has all tenants of the pool."""
    total_weight = sum(weights.values())
    total_use = sum(row.decayed_gpu_hours for row in use.values())
    shares = dict[str, Share]()
    for tenant in sorted(weights):
        share = weights[tenant] / total_weight
        use_share = factor = None
        if is_complete:
            own = use[tenant].decayed_gpu_hours if tenant in use else 0.0
            use_share = own / total_use if total_use else 0.0
            factor = 0.5 ** (use_share / share)
        shares[tenant] = Share(share, share * pool_gpus, use_share, factor)
    return shares
