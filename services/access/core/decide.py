"""Access's decider: it answers every command once and says what is true from now on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.access.core.state import Installation
from services.access.core.wishes import Granted, outcome
from shared.contracts.base import Command
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.topics import CONSUMED_EVENTS
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Fact, Input, Undecodable

LANES = 4
"""Pools and endpoints an installation can have when its settings do not say otherwise."""


class Access:
    """The installation's registry; see `Decider`.

    `lanes` is the number of partitions of the cluster topics. It bounds only which lane is given
    next; which lane somebody has is in the event and never changes.
    """

    ledger = "access"
    hears = CONSUMED_EVENTS["access"]

    def __init__(self, lanes: int = LANES) -> None:
        self._lanes = lanes

    def initial(self, partition: int) -> Installation:
        return Installation()

    def decide(self, state: Installation, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            match item.message:
                case Undecodable() as bad:
                    yield item.leads_to(bad.rejected())
                case Command() as wish if state.answered.is_due(item, self.ledger):
                    yield from self._answer(state, item, wish)

    def evolve(self, state: Installation, fact: Fact) -> None:
        match fact.event:
            case CommandAccepted() | CommandRefused() as answer:
                state.answered.apply(answer)
            case event:
                state.view.apply(event)

    def next_wake(self, state: Installation) -> int | None:
        return None

    def _answer(self, state: Installation, item: Input, wish: Command) -> Iterator[Decision]:
        found = outcome(state.view, self._lanes, wish)
        if not isinstance(found, Granted):
            yield refuse_command(item, found.of, found.reason, found.detail)
            return
        yield accept_command(item, found.of, duplicate=found.event is None)
        if found.event is not None:
            yield item.leads_to(found.event)
