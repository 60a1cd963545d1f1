from __future__ import annotations

from tests.services.placement.core.lane import job, kinds, lane


def test_a_job_is_enqueued_once() -> None:
    pool, admitted = lane(), job("a")
    assert "JobEnqueued" in kinds(pool.submit(admitted))
    assert "JobEnqueued" not in kinds(pool.submit(admitted))


def test_only_a_parked_job_is_enqueued_again() -> None:
    pool = lane("n")
    pool.run(job("a", retry={"max_attempts": 2}))
    assert kinds(pool.readmit("a", 2)) == []
    pool.exited("a", code=1)
    assert pool.job("a").phase == "parked"
    pool.readmit("a", 2, "n")
    assert (pool.job("a").attempt, pool.job("a").avoid) == (2, ("n",))


def test_a_cancel_ends_a_waiting_job_at_once_and_a_running_one_when_it_has_stopped() -> None:
    pool = lane("n")
    pool.submit(job("waiting", 16))
    assert "JobCancelled" in kinds(pool.cancel("waiting"))
    pool.run(job("running"))
    assert kinds(pool.cancel("running"))[0] == "JobStopRequested"
    assert kinds(pool.cancel("running")) == []
    assert "JobCancelled" in kinds(pool.stopped("running"))
