"""New ranks change the order of the queue as sorting it anew would."""

from __future__ import annotations

from services.placement.core.pool.queue_order import apply_ranks, queue_by
from services.placement.core.pool.ranks import Ranks
from tests.services.placement.core.lane import job, lane


def test_a_new_order_moves_only_entries_with_another_score() -> None:
    pool = lane()
    pool.submit(*(job(f"j{n}", 1) for n in range(9)))
    state = pool.state
    apply_ranks(state, Ranks(1, "srsf", "", {"j7": 3.0}))
    assert state.queue == queue_by(state, {"j7": 3.0})
    (group,) = state.queue.groups.values()
    assert group[0].job_id == "j7"


def test_a_predicted_run_time_moves_a_waiting_job_to_another_class() -> None:
    pool = lane(queue_mode="easy")
    pool.submit(job("a", 1), job("b", 1, walltime_s=60.0))
    state = pool.state
    apply_ranks(state, Ranks(1, "fcfs", "", {"a": 2.0, "b": 1.0}, run_s={"a": 60.0, "b": 9000.0}))
    (group,) = state.queue.groups.values()
    assert [key.job_id for key in group] == ["a", "b"]
    apply_ranks(state, Ranks(2, "fcfs", "", {"a": 2.0, "b": 1.0}))
    assert pool.job("a").predicted_s is None
    assert len(state.queue.groups) == 2
