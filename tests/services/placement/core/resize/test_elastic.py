"""Elastic jobs are read with their slots, lost work and nodes."""

from __future__ import annotations

from typing import Any

from services.placement.core.resize.elastic import ElasticJob, elastic_jobs
from shared.contracts.nodes import CordonNode
from tests.services.placement.core.lane import Lane, job, lane

ELASTIC = {"min_workers": 1, "max_workers": 2}


def running(**spec: Any) -> Lane:
    """Return a pool with a rigid job and an elastic one of two workers, on nodes a and b."""
    pool = lane("a", "b", gpus=4)
    pool.run(job("rigid", 2))
    pool.run(job("e", 3, elastic=ELASTIC, **spec))
    return pool


def only(pool: Lane, after_ms: int = 0) -> ElasticJob:
    (elastic_job,) = elastic_jobs(pool.state, pool.now + after_ms)
    return elastic_job


def test_jobs_of_a_fixed_size_are_left_out() -> None:
    pool = running()
    assert only(pool).job is pool.job("e")


def test_a_restart_undoes_the_work_since_the_checkpoint() -> None:
    pool = running(checkpoint_interval_s=10)
    started_at = pool.job("e").started_at
    (elastic_job,) = elastic_jobs(pool.state, started_at + 25_000)
    assert elastic_job.lost_work_s == 5


def test_a_cordoned_node_is_not_in_use() -> None:
    pool = running()
    assert only(pool).is_in_use
    pool.command(CordonNode(node_id=only(pool).slots[0].node_id))
    assert not only(pool).is_in_use
