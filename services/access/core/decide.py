"""Access's decider: answers every command once and writes what it changes in the registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.access.core.evolve import evolve
from services.access.core.outcomes import Denial, Grant, decide_outcome
from services.access.core.state import AccessState
from shared.contracts.base import Command
from shared.contracts.topics import CONSUMED_EVENTS
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Fact, Input, Undecodable

LANES = 4
"""Pools and endpoints of an installation whose settings name no number."""


class Access:
    """The registry of the installation; see `Decider`.

    `lanes` is the number of partitions of the cluster topics. It bounds only the lane assigned
    next; the lane of each pool and endpoint is in its event and never changes.
    """

    ledger = "access"
    consumed_events = CONSUMED_EVENTS["access"]

    def __init__(self, lanes: int = LANES) -> None:
        self._lanes = lanes

    def initial(self, partition: int) -> AccessState:
        return AccessState()

    def decide(self, state: AccessState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            match item.message:
                case Undecodable() as undecodable:
                    yield item.decision(undecodable.rejection())
                case Command() as command if state.answered.is_due(item, self.ledger):
                    yield from self._answer(state, item, command)

    def evolve(self, state: AccessState, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: AccessState) -> int | None:
        return None

    def _answer(self, state: AccessState, item: Input, command: Command) -> Iterator[Decision]:
        match decide_outcome(state.view, self._lanes, command):
            case Denial(of, reason, detail):
                yield refuse_command(item, of, reason, detail)
            case Grant(of, event):
                yield accept_command(item, of, duplicate=event is None)
                if event is not None:
                    yield item.decision(event)
