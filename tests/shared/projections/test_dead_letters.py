"""Rejected records are dead letters; quarantined inputs have the state that an operator led to."""

from __future__ import annotations

from itertools import permutations
from typing import Literal

import pytest

from shared.contracts.base import Event
from shared.contracts.rejected import (
    InputQuarantined,
    InputRejected,
    InputRetried,
    InputRetryRequested,
    InputSkipped,
)
from shared.projections.dead_letters import DeadLetterRow, dead_id_of, fold_dead_letter
from shared.projections.ledger_events import LedgerEvent
from tests.shared.ledger_events import AT, ledger_event

ID = "placement/0/4/0"
QUARANTINED = InputQuarantined(
    topic="reports",
    partition=1,
    offset=9,
    message_id="m",
    message_type="worker.exited.v1",
    reason="KeyError: 'x'",
    sha256="ab",
)
RETRY, SKIP = InputRetryRequested(input_id=ID), InputSkipped(input_id=ID, reason="late")
Outcome = Literal["decided", "raised", "not_retained"]


def fold(*events: LedgerEvent) -> DeadLetterRow:
    (key,) = {dead_id_of(event) for event in events}
    row = DeadLetterRow(key)
    for event in events:
        fold_dead_letter(row, event)
    return row


def of_access(event: Event) -> LedgerEvent:
    return ledger_event("access", event)


def of_placement(event: Event, seq: int = 4) -> LedgerEvent:
    return ledger_event("placement", event, seq=seq)


def retried(outcome: Outcome) -> LedgerEvent:
    return of_placement(InputRetried(input_id=ID, outcome=outcome), 9)


def test_a_dead_letter_names_the_rejected_record() -> None:
    rejected = InputRejected(
        topic="submissions.red", partition=1, offset=9, reason="no JSON", sha256="ab", tenant="red"
    )
    row = fold(ledger_event("admission", rejected, seq=4, index=2))
    assert row == DeadLetterRow(
        "admission/0/4/2",
        "admission",
        "submissions.red",
        1,
        9,
        "no JSON",
        "ab",
        "red",
        AT,
        state="rejected",
    )


def test_a_quarantined_input_is_open_and_names_its_message() -> None:
    row = fold(of_placement(QUARANTINED))
    assert (row.dead_id, row.log_offset, row.reason) == (ID, 9, "KeyError: 'x'")
    assert (row.message_id, row.message_type) == ("m", "worker.exited.v1")
    assert (row.state, row.settled) == ("open", False)


@pytest.mark.parametrize(
    ("decisions", "state", "settled"),
    [
        ([of_access(SKIP)], "skipped", True),
        ([of_access(RETRY)], "retrying", False),
        ([of_access(RETRY), retried("decided")], "retried", True),
        ([of_access(RETRY), retried("raised")], "raised_again", True),
        ([of_access(RETRY), retried("not_retained")], "not_retained", True),
    ],
)
def test_decisions_settle_an_input_in_whatever_order_the_ledgers_are_read(
    decisions: list[LedgerEvent], state: str, settled: bool
) -> None:
    rows = [fold(*order) for order in permutations([of_placement(QUARANTINED), *decisions])]
    assert all(row == rows[0] for row in rows)
    assert (rows[0].state, rows[0].settled, rows[0].decided_at) == (state, settled, AT)
    assert rows[0].decision_reason == ("late" if state == "skipped" else "")


def test_a_decision_on_what_was_never_quarantined_is_a_row_without_a_record() -> None:
    assert fold(of_access(SKIP)).topic == ""
