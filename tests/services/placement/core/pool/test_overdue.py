"""The one job that waited too long; see also `round/test_view.py`."""

from __future__ import annotations

from services.placement.core.pool.overdue import note_overdue, overdue_job
from shared.contracts.nodes import CordonNode
from tests.services.placement.core.lane import job, lane


def test_spot_jobs_and_jobs_that_never_fit_are_never_overdue() -> None:
    pool = lane("n1", gpus=8, reserve_after_s=10.0)
    pool.submit(job("huge", 16), job("spot", 8, spot=True), job("x", 8), job("b", 8))
    assert pool.job("huge").hold_reason == "no_node_fits"
    assert overdue_job(pool.state, pool.now + 9_000) == ""
    assert overdue_job(pool.state, pool.now + 20_000) == "b"


def test_a_job_that_waits_for_draining_nodes_takes_no_turn_from_others() -> None:
    pool = lane("n1", gpus=8, reserve_after_s=10.0)
    pool.node("n2", gpus=8)
    pool.command(CordonNode(node_id="n2"))
    pool.submit(job("x", 8), job("both", 8, workers=2), job("b", 8))
    assert pool.job("both").hold_reason == "draining"
    assert overdue_job(pool.state, pool.now + 20_000) == "b"


def test_a_pool_without_the_guard_reserves_for_no_job() -> None:
    pool = lane("n1", gpus=8, reserve_after_s=0.01, guard_predictions=True)
    pool.submit(job("x", 8), job("a", 8))
    pool.feed(after_ms=100)
    note_overdue(pool.state, pool.now)
    assert pool.state.overdue == "a"
    pool.pool(reserve_after_s=0.01, guard_predictions=False)
    note_overdue(pool.state, pool.now)
    assert pool.state.overdue == ""


def test_a_predicted_queue_makes_no_job_wait_for_ever() -> None:
    pool = lane("n1", queue_mode="easy", easy_runtime="history", guard_predictions=True)
    pool.submit(job("x", 8), job("a", 8))
    fortnight_ms = 14 * 86_400_000
    assert overdue_job(pool.state, pool.job("a").since + fortnight_ms - 1) == ""
    assert overdue_job(pool.state, pool.job("a").since + fortnight_ms) == "a"
