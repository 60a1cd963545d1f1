"""Every admitted job is waiting, running or ended once, with attempts without a gap."""

from __future__ import annotations

import pytest

from shared.contracts.admission import JobAdmitted, JobRejected
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobCheckpointed,
    JobPreempted,
    JobProgressed,
    JobRequeued,
    JobStarted,
    JobSucceeded,
    WorkersReady,
)
from shared.contracts.base import Event
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import Allocation, JobEnqueued, JobHeld, JobPlaced
from shared.verify.lifecycle import NEXT, JobLifecycleRule
from shared.verify.rules import Bounds
from tests.shared.ledger_events import ledger_event

SPEC = JobSpec(name="train")
ADMITTED = JobAdmitted(job_id="j", tenant="red", submitted_at=1, spec=SPEC)
ENQUEUED = JobEnqueued(job_id="j", tenant="red", submitted_at=1, spec=SPEC)
HELD = JobHeld(job_id="j", tenant="red", reason="no_capacity")
PLACED = JobPlaced(
    job_id="j",
    tenant="red",
    attempt=1,
    allocations=(Allocation(rank=0, node_id="n1"),),
    waited_ms=0,
    policy="fcfs",
)
STARTED = JobStarted(job_id="j", tenant="red", attempt=1)
PREEMPTED = JobPreempted(job_id="j", tenant="red", attempt=1, reason="higher_class")
SUCCEEDED = JobSucceeded(job_id="j", tenant="red", attempt=1)
CANCELLED = JobCancelled(job_id="j", tenant="red")
FAILED = JobAttemptFailed(job_id="j", tenant="red", attempt=1, reason="worker_failed")


def requeued(attempt: int) -> JobRequeued:
    return JobRequeued(job_id="j", tenant="red", attempt=attempt, reason="higher_class")


def violations(
    admission: list[Event], placement: list[Event], *, admission_seq: int = 100, last_seq: int = 100
) -> list[tuple[str, str]]:
    """Check both ledgers; `admission_seq` is how far placement has read admission."""
    rule = JobLifecycleRule({0: admission_seq}, Bounds({("placement", 0): last_seq}))
    for ledger, messages in (("admission", admission), ("placement", placement)):
        for seq, message in enumerate(messages, 1):
            rule.observe(ledger_event(ledger, message, seq=seq))
    return [(violation.position, violation.detail) for violation in rule.finish()]


def test_a_job_runs_to_its_end() -> None:
    assert violations([ADMITTED], [ENQUEUED, HELD, HELD, PLACED, STARTED, SUCCEEDED]) == []


def test_a_checkpoint_leaves_a_running_job_as_it_is() -> None:
    checkpoint = JobCheckpointed(job_id="j", tenant="red", attempt=1, worked_ms=5)
    running = [ENQUEUED, PLACED, STARTED, checkpoint, checkpoint]
    assert violations([ADMITTED], [*running, PREEMPTED]) == []
    assert violations([ADMITTED], [ENQUEUED, checkpoint]) == [
        ("placement/0/2/0", "j: checkpointed cannot follow enqueued")
    ]


def test_progress_leaves_a_running_job_as_it_is() -> None:
    progress = JobProgressed(
        job_id="j", tenant="red", attempt=1, step=1, steps_total=2, ends_at=2_000_000_000_000
    )
    assert violations([ADMITTED], [ENQUEUED, PLACED, STARTED, progress, SUCCEEDED]) == []
    assert violations([ADMITTED], [ENQUEUED, progress]) == [
        ("placement/0/2/0", "j: progressed cannot follow enqueued")
    ]


def test_a_preempted_job_waits_for_its_next_attempt() -> None:
    first = [ENQUEUED, PLACED, STARTED, PREEMPTED]
    assert violations([ADMITTED], [*first, requeued(2), PLACED, STARTED, SUCCEEDED]) == []


def test_a_failed_attempt_is_enqueued_again() -> None:
    second = ENQUEUED.model_copy(update={"attempt": 2})
    assert violations([ADMITTED], [ENQUEUED, PLACED, STARTED, FAILED, second]) == []


@pytest.mark.parametrize(
    ("placement", "position", "detail"),
    [
        ([STARTED], "placement/0/1/0", "j: started cannot follow nothing"),
        ([ENQUEUED, STARTED], "placement/0/2/0", "j: started cannot follow enqueued"),
        ([ENQUEUED, PREEMPTED], "placement/0/2/0", "j: preempted cannot follow enqueued"),
        ([ENQUEUED, SUCCEEDED], "placement/0/2/0", "j: succeeded cannot follow enqueued"),
        (
            [ENQUEUED, PLACED, STARTED, PREEMPTED, PLACED],
            "placement/0/5/0",
            "j: placed cannot follow preempted",
        ),
        ([ENQUEUED, CANCELLED, SUCCEEDED], "placement/0/3/0", "j: succeeded after cancelled"),
        (
            [ENQUEUED, PLACED, STARTED, PREEMPTED, requeued(3)],
            "placement/0/5/0",
            "j: attempt 3 follows 1",
        ),
    ],
)
def test_a_wrong_order_is_reported(placement: list[Event], position: str, detail: str) -> None:
    assert (position, detail) in violations([ADMITTED], placement)


def test_a_job_without_admission_is_reported() -> None:
    assert violations([], [ENQUEUED]) == [("j", "was enqueued and never admitted")]


def test_a_job_enqueued_after_the_first_pass_may_be_unknown() -> None:
    assert violations([], [ENQUEUED], last_seq=0) == []


def test_an_admitted_job_that_placement_has_read_is_enqueued() -> None:
    detail = "j was admitted and never enqueued"
    assert violations([ADMITTED], []) == [("admission/0/1/0", detail)]
    assert violations([ADMITTED], [], admission_seq=0) == []


@pytest.mark.parametrize(
    "end", [CANCELLED, JobRejected(job_id="j", tenant="red", reason="infeasible")]
)
def test_admission_ends_no_job_that_it_admitted(end: Event) -> None:
    assert violations([end], []) == []
    assert violations([ADMITTED, end], [ENQUEUED]) == [
        ("admission/0/2/0", "j was ended by admission after it was admitted or ended")
    ]


def test_a_job_is_admitted_once() -> None:
    assert violations([ADMITTED, ADMITTED], [ENQUEUED]) == [
        ("admission/0/2/0", "j was admitted after it was admitted or ended")
    ]


def test_events_of_workers_are_no_phase() -> None:
    ready = WorkersReady(job_id="j", attempt=1, ranks=(0,))
    assert violations([ADMITTED], [ENQUEUED, PLACED, ready, STARTED]) == []


def test_every_phase_may_be_reached() -> None:
    reachable = {verb for verbs in NEXT.values() for verb in verbs}
    assert NEXT.keys() - {""} <= reachable
