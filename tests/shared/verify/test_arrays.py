"""A cancelled array ends as a whole before its cancel is answered."""

from __future__ import annotations

import pytest

from shared.contracts.admission import ArrayCancelRequested, JobAdmitted, JobDeferred
from shared.contracts.attempts import JobCancelled
from shared.contracts.base import Event
from shared.contracts.bookkeeping import JobEnd, JobsReleased
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_spec import JobSpec
from shared.verify.arrays import ArrayCancelRule, array_of
from tests.shared.ledger_events import ledger_event

SPEC = JobSpec(name="train")
CANCEL = ArrayCancelRequested(job_id="a", command_id="c")
ANSWER = CommandAccepted(command_id="c", command_type="job.cancel.v1", of="a")


def deferred(index: int) -> JobDeferred:
    return JobDeferred(
        job_id=f"a.{index}", tenant="red", reason="quota", spec=SPEC, array_index=index
    )


def admitted(index: int) -> JobAdmitted:
    return JobAdmitted(
        job_id=f"a.{index}", tenant="red", submitted_at=1, spec=SPEC, array_index=index
    )


def cancelled(index: int) -> JobCancelled:
    return JobCancelled(job_id=f"a.{index}", tenant="red")


def released(index: int) -> JobsReleased:
    return JobsReleased(ends=(JobEnd(job_id=f"a.{index}", outcome="cancelled"),))


def violations(*messages: Event, ledger: str = "admission") -> list[tuple[str, str]]:
    rule = ArrayCancelRule()
    for seq, message in enumerate(messages, 1):
        rule.observe(ledger_event(ledger, message, seq=seq))
    return [(violation.position, violation.detail) for violation in rule.finish()]


def test_the_id_of_an_array_is_part_of_its_jobs_ids() -> None:
    assert array_of(ledger_event("admission", admitted(3))) == "a"
    alone = JobAdmitted(job_id="b", tenant="red", submitted_at=1, spec=SPEC)
    assert array_of(ledger_event("admission", alone)) == ""


def test_a_cancel_is_answered_after_every_job_ended() -> None:
    messages = (deferred(0), deferred(1), admitted(1), CANCEL, cancelled(0), released(1), ANSWER)
    assert violations(*messages) == []


@pytest.mark.parametrize("end", [cancelled(0), released(0)])
def test_an_answer_before_the_last_end_is_reported(end: Event) -> None:
    detail = "cancel of a was answered before 1 of its jobs ended"
    assert violations(deferred(0), deferred(1), CANCEL, end, ANSWER) == [
        ("admission/0/5/0", detail)
    ]


def test_a_job_created_after_the_cancel_is_reported() -> None:
    assert violations(deferred(0), CANCEL, deferred(1)) == [
        ("admission/0/3/0", "a.1 was created after a was cancelled")
    ]


def test_a_job_created_before_the_cancel_may_be_decided_again() -> None:
    assert violations(deferred(0), CANCEL, admitted(0)) == []


def test_other_ledgers_are_not_checked() -> None:
    assert violations(deferred(0), CANCEL, ANSWER, ledger="placement") == []
