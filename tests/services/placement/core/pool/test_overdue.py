"""The one job that waited too long; see also `round/test_view.py`."""

from __future__ import annotations

from services.placement.core.pool.overdue import oldest_overdue
from tests.services.placement.core.lane import job, lane


def test_spot_jobs_and_jobs_that_never_fit_are_never_overdue() -> None:
    pool = lane("n1", gpus=8, reserve_after_s=10.0)
    pool.submit(job("huge", 16), job("spot", 8, spot=True), job("x", 8), job("b", 8))
    assert pool.job("huge").hold_reason == "no_node_fits"
    assert oldest_overdue(pool.state, pool.now + 9_000) == ""
    assert oldest_overdue(pool.state, pool.now + 20_000) == "b"


def test_a_predicted_queue_makes_no_job_wait_for_ever() -> None:
    pool = lane("n1", queue_mode="easy", easy_runtime="history", guard_predictions=True)
    pool.submit(job("x", 8), job("a", 8))
    fortnight_ms = 14 * 86_400_000
    assert oldest_overdue(pool.state, pool.job("a").since + fortnight_ms - 1) == ""
    assert oldest_overdue(pool.state, pool.job("a").since + fortnight_ms) == "a"
