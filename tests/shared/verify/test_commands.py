"""Every consumed command has exactly one answer, from its owner."""

from __future__ import annotations

import pytest

from shared.contracts.admission import JobDeferred
from shared.contracts.attempts import JobCancelled, JobSucceeded
from shared.contracts.base import Event, UnknownType
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.job_spec import JobSpec
from shared.verify.commands import CommandAnswerRule, SentCommand
from shared.verify.rules import Bounds
from tests.shared.ledger_events import ledger_event

SUBMIT = SentCommand("c1", "job.submit.v1", "j", "commands/0/0", True)
CANCEL = SentCommand("c2", "job.cancel.v1", "j", "commands/0/1", True)
CANCEL_ARRAY = SentCommand("c3", "job.cancel.v1", "a", "commands/0/2", True)
IN_TRANSIT = SentCommand("c1", "job.submit.v1", "j", "commands/0/0", False)


def accepted(command_id: str = "c1", command_type: str = "job.submit.v1") -> CommandAccepted:
    return CommandAccepted(command_id=command_id, command_type=command_type)


def array_job(index: int) -> JobDeferred:
    return JobDeferred(
        job_id=f"a.{index}", tenant="red", reason="quota", spec=JobSpec(name="x"), array_index=index
    )


def violations(
    command: SentCommand, *events: tuple[str, Event], last_seq: int = 100, placement_seq: int = 100
) -> list[tuple[str, str]]:
    """Check one command; `placement_seq` is how far admission has read placement."""
    bounds = Bounds({("admission", 0): last_seq, ("placement", 0): last_seq})
    rule = CommandAnswerRule({command.command_id: command}, bounds, {0: placement_seq})
    for seq, (ledger, message) in enumerate(events, 1):
        rule.observe(ledger_event(ledger, message, seq=seq))
    return [(violation.position, violation.detail) for violation in rule.finish()]


def test_one_answer_of_the_owner_is_right() -> None:
    assert violations(SUBMIT, ("admission", accepted())) == []


def test_a_consumed_command_without_an_answer_is_reported() -> None:
    assert violations(SUBMIT) == [("commands/0/0", "job.submit.v1 c1: no answer")]


def test_a_command_in_transit_needs_no_answer() -> None:
    assert violations(IN_TRANSIT) == []


def test_two_answers_are_reported() -> None:
    refused = CommandRefused(command_id="c1", command_type="job.submit.v1", reason="late")
    assert violations(SUBMIT, ("admission", accepted()), ("admission", refused)) == [
        ("admission/0/1/0, admission/0/2/0", "c1 has 2 answers")
    ]


def test_an_answer_of_another_service_is_reported() -> None:
    assert violations(SUBMIT, ("placement", accepted())) == [
        ("placement/0/1/0", "job.submit.v1 must be answered by admission")
    ]


def test_an_answer_without_a_command_is_reported() -> None:
    events = (("admission", accepted()), ("admission", accepted("other")))
    assert violations(SUBMIT, *events) == [("admission/0/2/0", "other was never sent")]


def test_an_answer_after_the_first_pass_may_be_to_a_later_command() -> None:
    events = (("admission", accepted()), ("admission", accepted("later")))
    assert violations(SUBMIT, *events, last_seq=1) == []


def test_a_cancel_may_wait_while_its_job_has_not_ended() -> None:
    assert violations(CANCEL) == []


@pytest.mark.parametrize(
    ("ledger", "end"),
    [
        ("placement", JobSucceeded(job_id="j", tenant="red", attempt=1)),
        ("admission", JobCancelled(job_id="j", tenant="red")),
    ],
)
def test_a_cancel_of_an_ended_job_must_be_answered(ledger: str, end: Event) -> None:
    assert violations(CANCEL, (ledger, end)) == [("commands/0/1", "job.cancel.v1 c2: no answer")]


def test_an_end_that_admission_has_not_read_does_not_count() -> None:
    end = JobSucceeded(job_id="j", tenant="red", attempt=1)
    assert violations(CANCEL, ("placement", end), placement_seq=0) == []


def test_a_cancel_of_an_array_may_wait_for_the_last_of_its_jobs() -> None:
    jobs: list[tuple[str, Event]] = [("admission", array_job(index)) for index in range(2)]
    first = ("admission", JobCancelled(job_id="a.0", tenant="red"))
    last = ("placement", JobSucceeded(job_id="a.1", tenant="red", attempt=1))
    assert violations(CANCEL_ARRAY, *jobs, first) == []
    assert violations(CANCEL_ARRAY, *jobs, first, last) == [
        ("commands/0/2", "job.cancel.v1 c3: no answer")
    ]


def test_a_command_without_an_owner_is_an_error() -> None:
    unknown = SentCommand("c1", "job.unknown.v1", "j", "commands/0/0", True)
    with pytest.raises(UnknownType):
        violations(unknown)
