"""A pool of virtual nodes preempts by rank, and not more often than wall time allows."""

from __future__ import annotations

import pytest

from cli.stack.pool_defaults import LEAST_RESIDENCY_WALL_S, cluster_pool
from shared.contracts.pools import LOG_SCORE_MARGIN, default_of


@pytest.mark.parametrize(
    ("time_scale", "min_residency_s"),
    [(1.0, default_of("min_residency_s")), (100_000.0, 100_000.0 * LEAST_RESIDENCY_WALL_S)],
)
def test_jobs_stay_for_the_longer_of_the_default_and_two_wall_seconds(
    time_scale: float, min_residency_s: float
) -> None:
    pool = cluster_pool("virtual", time_scale)
    assert (pool.time_scale, pool.min_residency_s) == (time_scale, min_residency_s)


def test_ranks_of_history_preempt_beyond_their_margin_and_no_network_is_needed() -> None:
    pool = cluster_pool("virtual", 1.0)
    assert (pool.pool, pool.preemption, pool.learned) == ("virtual", "ranked", None)
    assert (pool.base_policy, pool.preempt_margin) == ("gittins", LOG_SCORE_MARGIN)
