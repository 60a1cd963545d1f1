"""Claims of the last proposal on free GPUs, and those that serve nothing."""

from __future__ import annotations

from services.placement.core.scheduled.allot import early_ms
from services.placement.core.scheduled.claims import has_vain_claim, is_scattered
from tests.services.placement.core.lane import Lane, job, lane


def next_proposal(pool: Lane) -> None:
    """Wake the pool when a proposal may come before its time."""
    pool.now = max(pool.now, early_ms(pool.state))
    pool.wake()


def test_gpus_on_which_a_worker_fits_nowhere_go_to_the_next_job() -> None:
    """Half of each node is in use: four GPUs are free, and no worker of four has room."""
    pool = lane("a", "b", gpus=4, scheduler="fcfs", min_residency_s=0)
    pool.run(job("one", 3), job("two", 3))
    pool.exited("one")
    pool.run(job("small", 2))
    assert pool.nodes_of("small") != pool.nodes_of("two")
    pool.submit(job("large", 3))
    next_proposal(pool)
    assert pool.state.schedule.allotted["large"].workers == 1
    assert is_scattered(pool.state, pool.job("large"))
    assert has_vain_claim(pool.state)
    pool.submit(job("later", 1))
    next_proposal(pool)
    assert pool.job("later").phase == "placed"
