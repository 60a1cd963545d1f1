"""Commands have one answer."""

from __future__ import annotations

from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.projections.answers import CommandRow, fold_answer
from tests.shared.ledger_events import AT, ledger_event

ACCEPTED = CommandAccepted(
    command_id="c1",
    command_type="job.submit.v1",
    of="j1",
    tenant="red",
    duplicate=True,
    principal="key:k1",
)
REFUSED = CommandRefused(
    command_id="c1", command_type="job.submit.v1", of="j1", reason="late", detail="too late"
)


def test_an_accepted_command_is_stored_with_its_subject() -> None:
    row = CommandRow("c1")
    fold_answer(row, ledger_event("admission", ACCEPTED, partition=2))
    assert row == CommandRow(
        "c1",
        "admission",
        2,
        "job.submit.v1",
        "j1",
        "red",
        True,
        True,
        answers=1,
        at=AT,
        principal="key:k1",
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
