"""How a pool of virtual nodes is scheduled unless somebody says otherwise: as Berth is best."""

from __future__ import annotations

from shared.contracts.access import ConfigurePool

LEARNED = "berth"
MARGIN = 0.7
"""Of ln-scores: who leads by less than a factor of two stops nobody."""
LEAST_RESIDENCY_S = 300.0
LEAST_RESIDENCY_WALL_S = 2.0
"""Where time is scaled a stop and a start take wall time too: not more often than this."""


def cluster_pool(pool: str, time_scale: float) -> ConfigurePool:
    """The learned priority with gated preemption, CP-SAT where the pool is contended."""
    return ConfigurePool(
        pool=pool,
        time_scale=time_scale,
        base_policy="fair_share",
        learned=LEARNED,
        preemption="ranked",
        preempt_margin=MARGIN,
        min_residency_s=max(LEAST_RESIDENCY_S, LEAST_RESIDENCY_WALL_S * time_scale),
    )
