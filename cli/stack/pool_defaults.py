"""Default settings of a pool of virtual nodes."""

from __future__ import annotations

from shared.contracts.pools import LOG_SCORE_MARGIN, ConfigurePool, default_of

LEAST_RESIDENCY_WALL_S = 2.0
"""Least wall seconds between starts and stops in a pool with scaled time."""


def cluster_pool(pool: str, time_scale: float) -> ConfigurePool:
    """Return a pool with the Gittins rank, gated preemption by it and the CP-SAT solver.

    Its nodes are simulated, so that drills harm no real job.
    """
    return ConfigurePool(
        pool=pool,
        time_scale=time_scale,
        base_policy="gittins",
        preemption="ranked",
        preempt_margin=LOG_SCORE_MARGIN,
        allow_injection=True,
        min_residency_s=max(default_of("min_residency_s"), LEAST_RESIDENCY_WALL_S * time_scale),
    )
