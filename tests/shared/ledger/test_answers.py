from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from shared.contracts.access import RetireTenant
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.job_commands import CancelJob
from shared.ledger.answers import AnsweredCommands, accept_command, fold_answer, refuse_command
from shared.ledger.decider import Decision, Fact, Input

CANCEL = Input(
    "commands", "c1", CancelJob(job_id="j1"), traceparent="trace", tenant="ada", principal="key-1"
)


@dataclass
class State:
    """The part of a decider's state that keeps the answers."""

    answered: AnsweredCommands = field(default_factory=AnsweredCommands)


def test_a_command_is_due_for_its_owner_alone() -> None:
    answered = AnsweredCommands()
    assert answered.is_due(CANCEL, "admission")
    assert not answered.is_due(CANCEL, "placement")
    assert not answered.is_due(CANCEL._replace(message=RetireTenant(tenant="ada")), "admission")


def test_an_event_is_never_due() -> None:
    event = CANCEL._replace(message=TenantNoted(tenant="ada"))
    assert not AnsweredCommands().is_due(event, "admission")


@pytest.mark.parametrize(
    "decision",
    [accept_command(CANCEL, "j1"), refuse_command(CANCEL, "j1", "unknown_job", "no such job")],
)
def test_an_answered_command_is_not_due_again(decision: Decision) -> None:
    assert isinstance(decision.event, CommandAccepted | CommandRefused)
    state = State()
    fold_answer(state, decision.event, Fact(decision.event, "admission", 0, 1, 0, 0))
    assert not state.answered.is_due(CANCEL, "admission")
    assert state.answered.is_due(CANCEL._replace(id="c2"), "admission")


def test_an_acceptance_has_the_sender_and_the_trace_of_its_command() -> None:
    assert accept_command(CANCEL, "j1", duplicate=True) == Decision(
        CommandAccepted(
            command_id="c1",
            command_type="job.cancel.v1",
            of="j1",
            tenant="ada",
            principal="key-1",
            duplicate=True,
        ),
        "c1",
        "trace",
    )


def test_a_refusal_names_the_tenant_that_it_is_given() -> None:
    decision = refuse_command(CANCEL, "j1", "unknown_job", "no such job", tenant="bob")
    assert decision.event == CommandRefused(
        command_id="c1",
        command_type="job.cancel.v1",
        of="j1",
        tenant="bob",
        principal="key-1",
        reason="unknown_job",
        detail="no such job",
    )


def test_only_a_command_is_answered() -> None:
    with pytest.raises(TypeError, match="not a command: TenantNoted"):
        accept_command(CANCEL._replace(message=TenantNoted(tenant="ada")), "ada")
