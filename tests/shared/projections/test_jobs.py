"""A job's rows follow the ledgers of admission and placement."""

from __future__ import annotations

import json

import pytest

from shared.contracts.admission import (
    CancelRequested,
    JobAdmitted,
    JobDeferred,
    JobReadmitted,
    JobRejected,
)
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobCheckpointed,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobProgressed,
    JobRequeued,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
    WorkersReady,
)
from shared.contracts.base import Event
from shared.contracts.failures import WorkerFailure
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.placement import Allocation, JobEnqueued, JobHeld, JobPlaced
from shared.projections.jobs import (
    AdmissionRow,
    PlacementRow,
    fold_admission,
    fold_placement,
    public_spec,
)
from shared.projections.ledger_events import NotFolded
from tests.shared.ledger_events import AT, ledger_event

SPEC = JobSpec(
    name="train",
    user="eve",
    priority_class="high",
    gang=Gang(workers=2, gpus_per_worker=4),
    command=("run",),
    env={"A": "1"},
)
ADMITTED = JobAdmitted(job_id="j", tenant="red", submitted_at=7, spec=SPEC)
DEFERRED = JobDeferred(
    job_id="j", tenant="red", reason="quota", detail={"short_gpus": 2.0}, spec=SPEC
)
TARGET = (Allocation(rank=0, node_id="n2", gpus=(0,)),)


def admission_row(*messages: Event) -> AdmissionRow:
    row = AdmissionRow("j", 0)
    for seq, message in enumerate(messages):
        event = ledger_event("admission", message, seq=seq, at=AT + seq, traceparent=f"00-{seq}")
        fold_admission(row, event)
    return row


def placement_row(*messages: Event) -> PlacementRow:
    row = PlacementRow("j", 0)
    for seq, message in enumerate(messages):
        fold_placement(row, ledger_event("placement", message, seq=seq, at=AT + seq))
    return row


def enqueued(**fields: int) -> JobEnqueued:
    return JobEnqueued(job_id="j", tenant="red", submitted_at=7, spec=SPEC, **fields)


def placed(*nodes: str) -> JobPlaced:
    return JobPlaced(
        job_id="j",
        tenant="red",
        attempt=1,
        allocations=tuple(Allocation(rank=n, node_id=name) for n, name in enumerate(nodes)),
        waited_ms=1,
        policy="fcfs",
    )


def started() -> JobStarted:
    return JobStarted(job_id="j", tenant="red", attempt=1)


def test_an_admitted_job_is_described_by_its_specification() -> None:
    row = admission_row(ADMITTED)
    assert (row.state, row.tenant, row.name, row.user_id) == ("admitted", "red", "train", "eve")
    assert (row.priority_class, row.workers, row.gpus) == ("high", 2, 8.0)
    assert (row.submitted_at, row.decided_at) == (7, AT)


def test_a_specification_is_stored_without_its_private_fields() -> None:
    spec = json.loads(public_spec(SPEC.model_dump(mode="json")))
    assert "command" not in spec and "env" not in spec
    assert spec["gang"]["workers"] == 2


def test_a_deferred_job_keeps_its_reason_until_it_is_admitted() -> None:
    deferred = admission_row(DEFERRED)
    assert (deferred.state, deferred.reason, deferred.submitted_at) == ("deferred", "quota", AT)
    assert json.loads(deferred.detail) == {"short_gpus": 2.0}
    admitted = admission_row(DEFERRED, ADMITTED)
    assert (admitted.state, admitted.reason, admitted.detail) == ("admitted", "", "")
    assert admitted.decided_at == AT + 1


def test_a_later_deferral_does_not_repeat_the_specification() -> None:
    again = JobDeferred(job_id="j", tenant="red", reason="dependency")
    row = admission_row(DEFERRED, again)
    assert (row.reason, row.name, row.submitted_at) == ("dependency", "train", AT)


def test_a_rejected_job_has_the_name_that_was_submitted() -> None:
    rejected = JobRejected(
        job_id="j", tenant="red", name="train", reason="infeasible", detail="no node fits"
    )
    row = admission_row(rejected)
    assert (row.state, row.reason, row.detail) == ("rejected", "infeasible", "no node fits")
    assert (row.name, row.submitted_at) == ("train", AT)


def test_a_cancel_request_leaves_the_decision_as_it_was() -> None:
    cancel = CancelRequested(job_id="j", tenant="red", command_id="c")
    row = admission_row(ADMITTED, cancel)
    assert (row.state, row.cancel_requested_at, row.decided_at) == ("admitted", AT + 1, AT)


def test_a_deferred_job_can_be_cancelled_by_admission() -> None:
    cancelled = JobCancelled(job_id="j", tenant="red", reason="typo")
    row = admission_row(DEFERRED, cancelled)
    assert (row.state, row.reason) == ("cancelled", "typo")


def test_the_trace_of_a_job_is_the_one_of_its_first_decision() -> None:
    assert admission_row(DEFERRED, ADMITTED).traceparent == "00-0"


def test_a_job_waits_is_held_and_runs() -> None:
    held = JobHeld(job_id="j", tenant="red", reason="no_capacity", short_gpus=2)
    row = placement_row(enqueued(), held)
    assert (row.phase, row.attempt, row.enqueued_at) == ("waiting", 1, AT)
    assert (row.held_reason, row.short_gpus) == ("no_capacity", 2)
    row = placement_row(enqueued(), held, placed("n2", "n1", "n2"))
    assert (row.phase, row.placed_at, row.nodes) == ("placed", AT + 2, '["n1","n2"]')
    assert (row.held_reason, row.short_gpus) == ("", 0.0)
    row = placement_row(enqueued(), held, placed("n1"), started())
    assert (row.phase, row.started_at) == ("running", AT + 3)


def test_a_requeued_job_waits_for_its_next_attempt() -> None:
    requeued = JobRequeued(job_id="j", tenant="red", attempt=2, reason="higher_class", gpu_s=1.5)
    row = placement_row(enqueued(), placed("n1"), started(), requeued)
    assert (row.phase, row.attempt, row.gpu_ms) == ("waiting", 2, 1500)
    assert (row.enqueued_at, row.waiting_since) == (AT, AT + 3)
    assert (row.placed_at, row.started_at) == (0, 0)


def test_a_running_job_has_the_last_checkpoint_of_its_start() -> None:
    started = JobStarted(job_id="j", tenant="red", attempt=1)
    saved = [
        JobCheckpointed(job_id="j", tenant="red", attempt=1, worked_ms=ms, step=step)
        for ms, step in ((9_000, 3), (60_000, 8))
    ]
    row = placement_row(started, *saved)
    assert (row.checkpointed_at, row.checkpoint_step) == (row.started_at + 60_000, 8)
    again = JobRequeued(job_id="j", tenant="red", attempt=2, reason="outranked")
    row = placement_row(started, *saved, again)
    assert (row.checkpointed_at, row.checkpoint_step) == (0, 0)


def test_a_running_job_has_what_it_reported_of_its_rest() -> None:
    progressed = JobProgressed(
        job_id="j", tenant="red", attempt=1, step=4, steps_total=10, ends_at=AT + 60_000
    )
    row = placement_row(started(), progressed)
    assert (row.progress_step, row.progress_total) == (4, 10)
    assert (row.progressed_at, row.expected_end_at) == (AT + 1, AT + 60_000)
    again = JobRequeued(job_id="j", tenant="red", attempt=2, reason="outranked")
    row = placement_row(started(), progressed, again)
    assert (row.progress_total, row.progressed_at, row.expected_end_at) == (0, 0, 0)


@pytest.mark.parametrize(
    ("message", "preemptions", "moves"),
    [
        (JobPreempted(job_id="j", tenant="red", attempt=1, reason="higher_class"), 1, 0),
        (
            JobMigrated(
                job_id="j",
                tenant="red",
                attempt=1,
                reason="drain",
                from_nodes=("n1",),
                to_nodes=("n2",),
                target=TARGET,
            ),
            0,
            1,
        ),
        (
            JobResized(
                job_id="j",
                tenant="red",
                attempt=1,
                reason="grow",
                from_workers=1,
                to_workers=2,
                target=TARGET,
            ),
            0,
            1,
        ),
        (JobStopRequested(job_id="j", tenant="red", attempt=1, reason="cancelled"), 0, 0),
        (JobStartFailed(job_id="j", tenant="red", attempt=1, node_ids=(), reason="timeout"), 0, 0),
    ],
    ids=lambda value: getattr(value, "TYPE", None),
)
def test_a_job_that_must_stop_is_stopping(message: Event, preemptions: int, moves: int) -> None:
    row = placement_row(enqueued(), placed("n1"), started(), message)
    assert (row.phase, row.preemptions, row.moves) == ("stopping", preemptions, moves)
    assert row.reason == message.model_dump()["reason"]


def test_a_failed_attempt_waits_for_its_backoff() -> None:
    failed = JobAttemptFailed(
        job_id="j", tenant="red", attempt=1, exit_code=3, reason="worker_failed", gpu_s=0.25
    )
    row = placement_row(enqueued(), placed("n1"), started(), failed)
    assert (row.phase, row.exit_code, row.gpu_ms) == ("backoff", 3, 250)


@pytest.mark.parametrize(
    ("end", "phase", "exit_code"),
    [
        (JobSucceeded(job_id="j", tenant="red", attempt=1, ran_ms=40), "succeeded", 0),
        (
            JobFailed(
                job_id="j", tenant="red", attempt=1, exit_code=9, reason="worker_failed", ran_ms=40
            ),
            "failed",
            9,
        ),
        (JobCancelled(job_id="j", tenant="red", ran_ms=40), "cancelled", None),
    ],
    ids=lambda value: getattr(value, "TYPE", None),
)
def test_a_job_ends_once(end: Event, phase: str, exit_code: int | None) -> None:
    row = placement_row(enqueued(), placed("n1"), started(), end)
    assert (row.phase, row.exit_code, row.ran_ms, row.ended_at) == (phase, exit_code, 40, AT + 3)


def test_the_gpu_time_of_all_attempts_is_summed_in_whole_milliseconds() -> None:
    row = placement_row(
        enqueued(),
        JobRequeued(job_id="j", tenant="red", attempt=2, reason="higher_class", gpu_s=2.5),
        JobSucceeded(job_id="j", tenant="red", attempt=2, gpu_s=0.0801),
    )
    assert row.gpu_ms == 2580


def test_an_event_without_a_fold_is_an_error() -> None:
    with pytest.raises(NotFolded):
        placement_row(WorkersReady(job_id="j", attempt=1, ranks=(0,)))
    with pytest.raises(NotFolded):
        admission_row(JobReadmitted(job_id="j", tenant="red", attempt=2))


def test_a_job_keeps_its_failure_until_it_runs_again() -> None:
    failure = WorkerFailure(reason="command_missing", detail="python", rank=0, node_id="n1")
    start_failed = JobStartFailed(
        job_id="j", tenant="ada", attempt=1, node_ids=("n1",), reason="refused", failure=failure
    )
    failed = placement_row(enqueued(), placed("n1"), start_failed)
    assert json.loads(failed.failure)["reason"] == "command_missing"
    assert placement_row(enqueued(), placed("n1"), start_failed, started()).failure == "null"
