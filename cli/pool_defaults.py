"""Default settings of a pool of virtual nodes."""

from __future__ import annotations

from shared.contracts.access import ConfigurePool

LEARNED = "berth"
MARGIN = 0.7
"""Margin of ln-scores: a job preempts only if its score leads by a factor of two."""
LEAST_RESIDENCY_S = 300.0
LEAST_RESIDENCY_WALL_S = 2.0
"""Least wall seconds between starts and stops in a pool with scaled time."""


def cluster_pool(pool: str, time_scale: float) -> ConfigurePool:
    """Return a pool with the learned priority, gated preemption and the CP-SAT solver."""
    return ConfigurePool(
        pool=pool,
        time_scale=time_scale,
        base_policy="fair_share",
        learned=LEARNED,
        preemption="ranked",
        preempt_margin=MARGIN,
        min_residency_s=max(LEAST_RESIDENCY_S, LEAST_RESIDENCY_WALL_S * time_scale),
    )
