"""Access's decider: answers every command once and writes what it changes in the registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.access.core.configuration import decide_configuration
from services.access.core.delete_pool import delete_pool
from services.access.core.enrolment import EnrolmentCommand, decide_enrolment, long_ended
from services.access.core.evolve import evolve
from services.access.core.outcomes import Denial, Grant, Outcome
from services.access.core.secrets import SecretCommand, decide_secret
from services.access.core.settle import Settlement, decide_settlement
from services.access.core.state import AccessState
from services.access.core.terminals import TerminalCommand, decide_terminal
from services.access.core.updates import AccessUpdate, decide_update
from services.access.core.users import UserCommand, decide_user
from services.access.core.webhooks import WebhookCommand, decide_webhook
from shared.contracts.base import Command
from shared.contracts.enrolment import NodeEnrolled
from shared.contracts.pools import DeletePool
from shared.contracts.topics import CONSUMED_EVENTS, LANES
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Fact, Input, Undecodable

CREDENTIAL_DAYS = 90
"""Life of a node's credential in days, where the settings name none; nodes renew theirs."""
DAY_MS = 86_400_000


class Access:
    """The registry of the installation; see `Decider`.

    `lanes` is the number of partitions of the cluster topics. It bounds only the lane assigned
    next; the lane of each pool and endpoint is in its event and never changes.
    """

    ledger = "access"
    consumed_events = CONSUMED_EVENTS["access"]

    def __init__(self, lanes: int = LANES, credential_days: int = CREDENTIAL_DAYS) -> None:
        self._lanes = lanes
        self._credential_ms = credential_days * DAY_MS

    def initial(self, partition: int) -> AccessState:
        return AccessState()

    def decide(self, state: AccessState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            match item.message:
                case Undecodable() as undecodable:
                    yield item.decision(undecodable.rejection())
                case Command() as command if state.answered.is_due(item, self.ledger):
                    yield from self._answer(state, item, command, now)

    def evolve(self, state: AccessState, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: AccessState) -> int | None:
        return None

    def _outcome(self, state: AccessState, command: Command, now: int) -> Outcome:
        view = state.view
        if isinstance(command, EnrolmentCommand):
            return decide_enrolment(view.enrolled, view.pools, command, now, self._credential_ms)
        if isinstance(command, Settlement):
            return decide_settlement(state.settled, command)
        if isinstance(command, SecretCommand):
            return decide_secret(view, command, now)
        if isinstance(command, WebhookCommand):
            return decide_webhook(view, command, now)
        if isinstance(command, UserCommand):
            return decide_user(view, command)
        if isinstance(command, TerminalCommand):
            return decide_terminal(view, command, now)
        if isinstance(command, DeletePool):
            return delete_pool(view, command, now)
        if isinstance(command, AccessUpdate):
            return decide_update(view, command)
        return decide_configuration(view, self._lanes, command)

    def _answer(
        self, state: AccessState, item: Input, command: Command, now: int
    ) -> Iterator[Decision]:
        match self._outcome(state, command, now):
            case Denial(of, reason, detail):
                yield refuse_command(item, of, reason, detail)
            case Grant(of, event, others):
                yield accept_command(item, of, duplicate=event is None)
                if event is not None:
                    yield item.decision(event)
                for other in others:
                    yield item.decision(other)
                if isinstance(event, NodeEnrolled):
                    for forgotten in long_ended(state.view.enrolled, now):
                        yield item.decision(forgotten)
