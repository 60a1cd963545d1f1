"""Pools of two GPU types under a scheduler."""

from __future__ import annotations

from shared.contracts.base import Event
from tests.services.placement.core.lane import Lane

FAST, SLOW = "fast", "slow"
ROUND_MS = 360_000


def typed(scheduler: str = "gavel", **settings: object) -> Lane:
    """A pool with four GPUs of each of two types."""
    pool = Lane()
    pool.pool(scheduler=scheduler, **{"min_residency_s": 0, **settings})
    pool.node("f", 4, gpu_type=FAST)
    pool.node("s", 4, gpu_type=SLOW)
    return pool


def next_round(pool: Lane) -> list[Event]:
    """Return what the round of the next proposal decides."""
    pool.now = max(pool.now, pool.state.schedule.until)
    return pool.wake()


def type_of(pool: Lane, job_id: str) -> str:
    (name,) = pool.nodes_of(job_id)
    return {"f": FAST, "s": SLOW}[name]
