"""Ends of attempts: retries, requeues, final failures, success."""

from __future__ import annotations

import pytest

from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobPreempted,
    JobRequeued,
)
from shared.contracts.job_spec import Retry
from shared.contracts.placement import JobEnqueued, JobPlaced
from shared.contracts.reports import WorkerExited, WorkerRefused
from tests.services.placement.core.lane import job, kinds, lane, refused, stopped


def test_a_failed_attempt_goes_back_to_admission_while_the_retry_policy_allows_one() -> None:
    pool = lane("n1")
    pool.run(job("a", retry={"max_attempts": 2}))
    _, failed = pool.exited("a", code=1)
    assert isinstance(failed, JobAttemptFailed) and failed.node_ids == ("n1",)
    again, placed = pool.readmit("a", 2, "n1")
    assert isinstance(again, JobEnqueued) and (again.attempt, again.avoid_nodes) == (2, ("n1",))
    assert isinstance(placed, JobPlaced) and placed.attempt == 2
    pool.ready("a")
    assert kinds(pool.exited("a", code=1)) == ["AllocationReleased", "JobFailed"]
    assert pool.readmit("a", 3) == []


def test_each_end_of_an_attempt_reports_its_gpu_time_once() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("a", 2, retry={"max_attempts": 2}, priority_class="low"))
    pool.submit(job("high", 2, priority_class="high"), after_ms=3000)
    _, again, *_ = pool.stopped("a", after_ms=1000)
    assert isinstance(again, JobRequeued) and again.gpu_s == 8.0
    pool.ready("high")
    pool.exited("high", after_ms=100)
    pool.ready("a")
    _, failed = pool.exited("a", code=1, after_ms=500)
    assert isinstance(failed, JobAttemptFailed) and failed.gpu_s == 1.0
    pool.now += 9000
    (cancelled,) = pool.cancel("a")
    assert isinstance(cancelled, JobCancelled)
    assert (cancelled.gpu_s, cancelled.ran_ms) == (0.0, 0)


def test_a_preempted_attempt_does_not_use_up_the_retry_policy() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a", retry={"max_attempts": 2}, priority_class="low"))
    pool.submit(job("high", priority_class="high"))
    pool.stopped("a", after_ms=100)
    pool.ready("high")
    pool.exited("high", after_ms=100)
    pool.ready("a")
    assert pool.job("a").attempt == 2
    assert kinds(pool.exited("a", code=1)) == ["AllocationReleased", "JobAttemptFailed"]


def test_a_job_that_no_node_ever_starts_waits_longer_each_time_and_fails_in_the_end() -> None:
    pool = lane("n1")
    pool.submit(job("a"))
    pauses, events = [], []
    while "a" in pool.state.jobs:
        events = pool.report(*pool.all("a", refused))
        if "a" in pool.state.jobs:
            before = pool.now
            pool.wake()
            pauses.append(pool.now - before)
    assert pauses == [500, 1000, 2000, 4000, 8000, 16000, 30000]
    assert kinds(events) == ["AllocationReleased", "JobStartFailed", "JobFailed"]


def test_a_finish_folded_first_wins_over_a_cancel() -> None:
    pool = lane("n1")
    pool.run(job("a"))
    pool.exited("a")
    assert pool.cancel("a") == []


def test_a_preempted_job_with_workers_that_all_exited_with_0_has_succeeded() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a", priority_class="low"))
    pool.submit(job("high", priority_class="high"))
    assert kinds(pool.exited("a"))[:2] == ["AllocationReleased", "JobSucceeded"]


def permanent_refusal(
    allocation_id: str, job_id: str, reason: str = "secret_missing"
) -> WorkerRefused:
    return WorkerRefused(
        allocation_id=allocation_id, job_id=job_id, reason=reason, detail="python", permanent=True
    )


def test_a_start_that_fails_on_every_node_is_not_tried_again() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("a", 2, workers=2))
    first, second = pool.ids_of("a")
    decided = pool.report(permanent_refusal(second, "a"))
    assert kinds(decided) == ["AllocationReleased", "JobStartFailed", "JobStopRequested"]
    (failed,) = [
        event for event in pool.report(stopped(first, "a")) if isinstance(event, JobFailed)
    ]
    assert failed.attempt == 1 and failed.failure is not None
    assert (failed.failure.reason, failed.failure.detail) == ("secret_missing", "python")
    assert (failed.failure.rank, failed.failure.permanent) == (1, True)


@pytest.mark.parametrize("reason", ["workdir_missing", "command_missing"])
@pytest.mark.parametrize(("nodes", "starts"), [(1, 1), (2, 2), (5, 3)])
def test_what_one_node_lacks_is_looked_for_on_others(reason: str, nodes: int, starts: int) -> None:
    """Each start is on another node: all fail, or as many as are looked at."""
    pool = lane(*(f"n{number}" for number in range(nodes)))
    pool.submit(job("a"))
    seen: list[str] = []
    while "a" in pool.state.jobs:
        (allocation_id,) = pool.ids_of("a")
        seen.append(pool.job("a").allocations[allocation_id].slot.node_id)
        events = pool.report(permanent_refusal(allocation_id, "a", reason))
        if "a" in pool.state.jobs:
            pool.wake()
    assert len(seen) == len(set(seen)) == starts
    failed = next(event for event in events if isinstance(event, JobFailed))
    assert failed.failure is not None and failed.failure.reason == reason


def test_a_job_starts_on_a_node_that_has_its_directory() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("a"))
    (allocation_id,) = pool.ids_of("a")
    pool.report(permanent_refusal(allocation_id, "a", "workdir_missing"))
    pool.wake()
    pool.ready("a")
    assert pool.job("a").phase == "running"


def test_a_program_that_no_node_can_execute_is_not_tried_again() -> None:
    """Such as a script without its first line: only the start itself shows it."""
    pool = lane("n1")
    pool.submit(job("a", 2, retry=Retry(max_attempts=5)))
    pool.ready("a")
    report = WorkerExited(
        allocation_id=pool.ids_of("a")[0],
        job_id="a",
        exit_code=126,
        reason="command_unusable",
        permanent=True,
    )
    failed = next(e for e in pool.report(report) if isinstance(e, JobFailed))
    assert (failed.reason, failed.attempt, failed.exit_code) == ("worker_failed", 1, 126)


def test_a_worker_that_its_node_fenced_does_not_count_as_an_attempt() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("a", 2))
    pool.ready("a")
    (allocation_id,) = pool.ids_of("a")
    report = WorkerExited(allocation_id=allocation_id, job_id="a", exit_code=137, reason="fenced")
    events = pool.report(report)
    decided = kinds(events)
    assert "JobPreempted" in decided and "JobRequeued" in decided
    preempted = next(event for event in events if isinstance(event, JobPreempted))
    assert preempted.terms["lease_over"] == preempted.terms["workers_lost"] == 1.0
    assert "JobAttemptFailed" not in decided and "JobFailed" not in decided


def test_a_lost_worker_is_a_preemption_with_what_it_cost() -> None:
    """As one that placement decides: lost work, restart and starts are noted, no attempt is."""
    pool = lane("n1", "n2")
    pool.submit(job("a", 2, checkpoint_interval_s=60.0))
    pool.ready("a")
    [name] = pool.ids_of("a")
    lost = WorkerExited(allocation_id=name, job_id="a", exit_code=137, reason="step_lost")
    events = pool.report(lost, after_ms=90_000)
    preempted = next(event for event in events if isinstance(event, JobPreempted))
    assert (preempted.reason, preempted.lost_work_s) == ("node_lost", 30.0)
    assert preempted.terms == {"restart_s": 0.0, "starts": 1.0, "workers_lost": 1.0}
    assert "JobRequeued" in kinds(events) and pool.job("a").failures == 0
