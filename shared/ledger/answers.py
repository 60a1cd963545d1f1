"""Answers to commands: its owner answers each command once, however often it is delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from shared.contracts.base import Command
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.construct import construct
from shared.ledger.decider import Decision, Fact, Input
from shared.ledger.recent_ids import RecentIds

Answer: TypeAlias = CommandAccepted | CommandRefused


@dataclass(slots=True)
class AnsweredCommands(RecentIds):
    """Ids of the commands that a decider has answered, or is bound to answer later."""

    def is_due(self, item: Input, owner: str) -> bool:
        """Return whether `item` is a command of this owner that has no answer yet."""
        message = item.message
        return isinstance(message, Command) and owner == message.OWNER and item.id not in self


class AnswersCommands(Protocol):
    """The state of a decider that answers commands."""

    answered: AnsweredCommands


def fold_answer(state: AnswersCommands, event: Answer, fact: Fact) -> None:
    """Remember that the command has its answer."""
    state.answered.add(event.command_id)


def accept_command(item: Input, of: str, *, tenant: str = "", duplicate: bool = False) -> Decision:
    """Return the acceptance of a command about `of`; the tenant is the sender by default."""
    about = (item.id, _type_of(item), of, tenant or item.tenant)
    return item.decision(accepted(*about, principal=item.principal, duplicate=duplicate))


def refuse_command(item: Input, of: str, reason: str, detail: str, *, tenant: str = "") -> Decision:
    """Return the refusal of a command about `of`: a code for machines, a detail for people."""
    about = (item.id, _type_of(item), of, tenant or item.tenant)
    return item.decision(refused(*about, reason, detail, principal=item.principal))


def accepted(
    command_id: str,
    command_type: str,
    of: str,
    tenant: str,
    *,
    principal: str = "",
    duplicate: bool = False,
) -> CommandAccepted:
    """Return the acceptance of a command that may have been decided on long ago."""
    return construct(
        CommandAccepted,
        command_id=command_id,
        command_type=command_type,
        of=of,
        tenant=tenant,
        principal=principal or None,
        duplicate=duplicate,
    )


def refused(
    command_id: str,
    command_type: str,
    of: str,
    tenant: str,
    reason: str,
    detail: str,
    *,
    principal: str = "",
) -> CommandRefused:
    """Return the refusal of a command that may have been decided on long ago."""
    return construct(
        CommandRefused,
        command_id=command_id,
        command_type=command_type,
        of=of,
        tenant=tenant,
        principal=principal or None,
        reason=reason,
        detail=detail,
    )


def _type_of(item: Input) -> str:
    if not isinstance(item.message, Command):
        raise TypeError(f"not a command: {type(item.message).__name__}")
    return item.message.TYPE
