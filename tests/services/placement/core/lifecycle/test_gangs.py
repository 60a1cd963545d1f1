"""A job's life on GPUs: go, end, failure, cancel, and reports that come late or twice."""

from __future__ import annotations

from services.placement.core.decide import Placement
from shared.contracts.attempts import (
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobRequeued,
    JobStartFailed,
    JobSucceeded,
    WorkersReady,
)
from shared.contracts.job_spec import Retry
from shared.contracts.placement import JobEnqueued, JobPlaced
from shared.contracts.reports import WorkerExited, WorkerRefused
from shared.ledger.decider import Undecodable
from tests.services.placement.core.lane import (
    TRACE,
    exited,
    job,
    kinds,
    lane,
    ready,
    refused,
    stopped,
)


def test_a_plain_job_is_enqueued_and_placed_in_the_batch_that_brought_it() -> None:
    pool = lane("n1")
    enqueued, placed = pool.submit(job("a", 2), after_ms=1)
    assert isinstance(enqueued, JobEnqueued) and enqueued.attempt == 1
    assert isinstance(placed, JobPlaced)
    (allocation,) = placed.allocations
    assert (allocation.node_id, allocation.gpus, allocation.gpu_milli) == ("n1", (0, 1), 1000)
    assert placed.policy == "class_submit+best_fit"
    assert placed.terms == {"position": 0, "waiting": 1, "nodes": 1, "node_gpus_left": 6}


def test_the_go_comes_when_the_worker_is_ready_and_success_when_it_exited_with_0() -> None:
    pool = lane("n1")
    pool.submit(job("a", 2))
    assert kinds(pool.ready("a")) == ["JobStarted"]
    released, done = pool.exited("a", after_ms=2500)
    assert isinstance(released, AllocationReleased) and released.reason == "exited"
    assert isinstance(done, JobSucceeded)
    assert (done.ran_ms, done.gpu_s) == (2500, 5.0)
    assert pool.state.jobs == {} and pool.free("n1") == [1000] * 8


def test_every_fact_of_a_job_carries_its_trace() -> None:
    pool = lane("n1")
    pool.submit(job("a"))
    pool.report(*pool.all("a", lambda i, j: exited(i, j, 1)))
    facts = [fact for fact in pool.facts if getattr(fact.event, "job_id", "") == "a"]
    assert len(facts) > 3 and {fact.traceparent for fact in facts} == {TRACE}


def test_a_gang_starts_once_when_its_last_worker_is_ready() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("a", 8, workers=2))
    one, other = pool.all("a", ready)
    (noted,) = pool.report(one)
    assert isinstance(noted, WorkersReady) and noted.ranks == (0,)
    assert pool.report(one) == []
    assert kinds(pool.report(other)) == ["JobStarted"]
    assert pool.report(one, other) == []


def test_a_gang_succeeds_when_all_its_workers_exited_with_0() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 8, workers=2))
    one, other = pool.ids_of("a")
    assert kinds(pool.report(exited(one, "a"))) == ["AllocationReleased"]
    assert kinds(pool.report(exited(other, "a"))) == ["AllocationReleased", "JobSucceeded"]


def test_one_failed_worker_stops_its_gang_and_the_job_fails_when_all_are_gone() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 8, workers=2))
    one, other = pool.ids_of("a")
    events = pool.report(exited(one, "a", 3))
    assert kinds(events) == ["AllocationReleased", "JobStopRequested"]
    released, failed = pool.report(stopped(other, "a"))
    assert isinstance(released, AllocationReleased) and released.reason == "stopped"
    assert isinstance(failed, JobFailed) and failed.exit_code == 3


def test_a_refused_worker_sends_the_gang_back_in_line_and_that_node_is_avoided() -> None:
    pool = lane("n1", "n2", "n3")
    pool.submit(job("a", 8, workers=2))
    one, other = pool.ids_of("a")
    events = pool.report(refused(one, "a"))
    assert kinds(events) == ["AllocationReleased", "JobStartFailed", "JobStopRequested"]
    assert isinstance(events[1], JobStartFailed) and events[1].node_ids == ("n1",)
    again = pool.report(stopped(other, "a"))[1]
    assert isinstance(again, JobRequeued)
    assert (again.attempt, again.avoid_nodes) == (2, ("n1",))
    pool.wake()
    assert pool.nodes_of("a") == ("n2", "n3")


def test_a_gang_that_is_not_ready_in_time_starts_again_elsewhere() -> None:
    pool = lane("n1", "n2", "n3", start_timeout_s=60.0)
    pool.submit(job("a", 8, workers=2))
    pool.report(pool.all("a", ready)[0])
    assert pool.decider.next_wake(pool.state) == pool.now + 60_000
    failed, stop = pool.wake()
    assert isinstance(failed, JobStartFailed)
    assert (failed.reason, failed.node_ids) == ("start_timeout", ("n2",))
    assert kinds([stop]) == ["JobStopRequested"]
    assert kinds(pool.stopped("a"))[:3] == [
        "AllocationReleased",
        "AllocationReleased",
        "JobRequeued",
    ]
    pool.wake()
    assert pool.nodes_of("a") == ("n1", "n3")


def test_a_worker_that_dies_before_the_go_is_a_failed_start_not_a_failed_attempt() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("a"))
    events = pool.exited("a", code=127)
    assert kinds(events)[:3] == ["AllocationReleased", "JobStartFailed", "JobRequeued"]


def test_a_running_worker_that_its_executor_lost_sends_the_job_back_in_line() -> None:
    pool = lane("n1")
    pool.run(job("a"))
    events = pool.stopped("a")
    assert kinds(events)[:3] == ["AllocationReleased", "JobPreempted", "JobRequeued"]


def test_a_waiting_job_is_cancelled_at_once() -> None:
    pool = lane("n1", gpus=1)
    pool.submit(job("a"), job("b"))
    (cancelled,) = pool.cancel("b", "enough")
    assert isinstance(cancelled, JobCancelled) and cancelled.reason == "enough"


def test_a_running_job_is_cancelled_when_its_workers_are_gone() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 8, workers=2))
    assert kinds(pool.cancel("a", "enough")) == ["JobStopRequested"]
    assert pool.cancel("a") == []
    one, other = pool.ids_of("a")
    assert kinds(pool.report(stopped(one, "a"))) == ["AllocationReleased"]
    cancelled = pool.report(exited(other, "a"))[1]
    assert isinstance(cancelled, JobCancelled) and cancelled.reason == "enough"


def test_a_placed_job_is_cancelled_before_its_go() -> None:
    pool = lane("n1")
    pool.submit(job("a"))
    assert kinds(pool.cancel("a")) == ["JobStopRequested"]
    assert pool.ready("a") == []
    assert kinds(pool.stopped("a")) == ["AllocationReleased", "JobCancelled"]


def test_a_job_between_two_attempts_is_cancelled_at_once_and_never_comes_back() -> None:
    pool = lane("n1")
    pool.run(job("a", retry={"max_attempts": 2}))
    pool.exited("a", code=1)
    assert kinds(pool.cancel("a")) == ["JobCancelled"]
    assert pool.readmit("a", 2) == []


def test_a_cancel_overrides_the_way_back_in_line() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a", priority_class="low"))
    pool.submit(job("high", priority_class="high"))
    assert kinds(pool.cancel("a")) == ["JobStopRequested"]
    assert kinds(pool.stopped("a"))[:2] == ["AllocationReleased", "JobCancelled"]


def test_late_repeated_and_unknown_reports_change_nothing() -> None:
    pool = lane("n1")
    pool.run(job("a"))
    (old,) = pool.ids_of("a")
    pool.report(exited(old, "a"), exited(old, "a"))
    assert pool.report(exited(old, "a", 1), stopped(old, "a"), exited("0/9/9/0", "never")) == []


def test_a_report_about_an_older_attempt_does_not_touch_the_newer_one() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a"))
    (old,) = pool.ids_of("a")
    pool.report(stopped(old, "a"))
    assert pool.report(exited(old, "a"), ready(old, "a")) == []
    assert pool.job("a").phase == "placed"


def test_the_same_admission_twice_enqueues_once() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a"))
    assert pool.submit(job("a")) == []


def test_undecodable_reports_are_rejected_in_the_ledger() -> None:
    pool = lane("n1")
    (events,) = pool.feed(pool.an("reports", Undecodable("reports", 0, 7, "no json", "ab")))  # type: ignore[arg-type]
    assert kinds([events]) == ["InputRejected"]


def test_nothing_is_placed_before_the_lane_has_its_pool() -> None:
    pool = type(lane())(decider=Placement())
    pool.node("n1")
    assert kinds(pool.submit(job("a"))) == ["JobEnqueued"]
    assert kinds(pool.pool()) == ["PoolConfigured", "JobPlaced"]
    assert pool.pool() == []


def test_a_pool_of_another_lane_is_none_of_ours() -> None:
    assert lane().pool(partition=1) == []


def test_an_older_executor_puts_the_detail_into_the_reason() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("a", 2))
    report = WorkerRefused(allocation_id=pool.ids_of("a")[0], job_id="a", reason="gpu_busy: [3]")
    start_failed = next(e for e in pool.report(report) if isinstance(e, JobStartFailed))
    assert start_failed.failure is not None
    assert (start_failed.failure.reason, start_failed.failure.detail) == ("gpu_busy", "[3]")
    assert not start_failed.failure.permanent


def test_a_failed_run_keeps_its_first_failure_and_the_next_start_clears_it() -> None:
    pool = lane("n1")
    pool.submit(job("a", 2, retry=Retry(max_attempts=2)))
    pool.ready("a")
    (allocation_id,) = pool.ids_of("a")
    report = WorkerExited(
        allocation_id=allocation_id,
        job_id="a",
        exit_code=137,
        reason="out_of_memory",
        detail="used 2.0 GiB; limit 1.0 GiB",
        output=("step 1", "step 2"),
    )
    attempt = next(e for e in pool.report(report) if isinstance(e, JobAttemptFailed))
    assert attempt.failure is not None and attempt.failure.exit_code == 137
    assert attempt.failure.output == ("step 1", "step 2")
