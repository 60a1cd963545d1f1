"""Commands have one answer; rejected records become dead letters."""

from __future__ import annotations

from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.projections.answers import CommandRow, DeadLetterRow, dead_letter_row, fold_answer
from tests.shared.ledger_events import AT, ledger_event

ACCEPTED = CommandAccepted(
    command_id="c1", command_type="job.submit.v1", of="j1", tenant="red", duplicate=True
)
REFUSED = CommandRefused(
    command_id="c1", command_type="job.submit.v1", of="j1", reason="late", detail="too late"
)


def test_an_accepted_command_is_stored_with_its_subject() -> None:
    row = CommandRow("c1")
    fold_answer(row, ledger_event("admission", ACCEPTED, partition=2))
    assert row == CommandRow(
        "c1", "admission", 2, "job.submit.v1", "j1", "red", True, True, answers=1, at=AT
    )


def test_a_refused_command_has_its_reason() -> None:
    row = CommandRow("c1")
    fold_answer(row, ledger_event("placement", REFUSED))
    assert (row.accepted, row.reason, row.detail) == (False, "late", "too late")


def test_a_second_answer_is_counted() -> None:
    row = CommandRow("c1")
    fold_answer(row, ledger_event("admission", ACCEPTED))
    fold_answer(row, ledger_event("placement", REFUSED, seq=2))
    assert row.answers == 2


def test_a_dead_letter_names_the_rejected_record() -> None:
    rejected = InputRejected(
        topic="submissions.red", partition=1, offset=9, reason="no JSON", sha256="ab", tenant="red"
    )
    row = dead_letter_row(ledger_event("admission", rejected, seq=4, index=2))
    assert row == DeadLetterRow(
        "admission/0/4/2", "admission", "submissions.red", 1, 9, "no JSON", "ab", "red", AT
    )


def test_an_input_that_was_set_aside_is_listed_beside_the_dead_letters() -> None:
    aside = InputQuarantined(
        topic="reports", partition=1, offset=9, reason="KeyError: 'x'", sha256="ab"
    )
    row = dead_letter_row(ledger_event("placement", aside, seq=4))
    assert (row.dead_id, row.log_offset) == ("placement/0/4/0", 9)
    assert row.reason == "set aside: KeyError: 'x'"
