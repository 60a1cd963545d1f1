"""A quarantined input is settled once."""

from __future__ import annotations

import pytest

from services.access.core.decide import Access
from shared.contracts.access import RetryInput, SkipInput
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.rejected import InputRetryRequested, InputSkipped
from tests.harness.decider import an_input, given, run

ID = "placement/0/17/2"
RETRY, SKIP = RetryInput(input_id=ID), SkipInput(input_id=ID, reason="of no use")


@pytest.mark.parametrize(
    ("command", "event"),
    [
        (RETRY, InputRetryRequested(input_id=ID)),
        (SKIP, InputSkipped(input_id=ID, reason="of no use")),
    ],
)
def test_a_settlement_is_accepted_once_and_a_repetition_changes_nothing(
    command: RetryInput | SkipInput, event: InputRetryRequested | InputSkipped
) -> None:
    state = given(Access())
    answer, decided = run(Access(), state, [an_input(command, "access.commands")])
    assert isinstance(answer, CommandAccepted) and decided == event
    (again,) = run(Access(), state, [an_input(command, "access.commands")])
    assert isinstance(again, CommandAccepted) and again.duplicate


@pytest.mark.parametrize(
    ("before", "command", "reason"),
    [
        ([InputSkipped(input_id=ID, reason="x")], RETRY, "already_settled"),
        ([InputRetryRequested(input_id=ID)], SKIP, "already_settled"),
        ([], RetryInput(input_id="nobody/0/1/0"), "unknown_input"),
        ([], RetryInput(input_id="access/0/1/0"), "unknown_input"),
    ],
)
def test_another_decision_and_an_unknown_ledger_are_refused(
    before: list[InputSkipped | InputRetryRequested], command: RetryInput | SkipInput, reason: str
) -> None:
    state = given(Access(), *before)
    (refused,) = run(Access(), state, [an_input(command, "access.commands")])
    assert isinstance(refused, CommandRefused) and refused.reason == reason
