"""Tables of folds: what each event type of a ledger does to the state of its decider.

Each decider has one such table in its `evolve.py`; the executor, which reads another's ledger and
returns effects, matches instead. A look-up by type costs the same for every event; a chain of
patterns would call pydantic's slow `isinstance` once per pattern before the hit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from shared.contracts.base import Event
from shared.contracts.clocks import ClockStepped
from shared.contracts.rejected import InputQuarantined, InputRejected, InputRetried
from shared.ledger.decider import Fact

S = TypeVar("S")

EventFold: TypeAlias = Callable[[S, Any, Fact], None]
"""Applies an event of one type, which is that of the fact, to a state."""


def ignore(state: object, event: Event, fact: Fact) -> None:
    """Leave the state as it is."""


def unknown_event(ledger: str, event: Event) -> TypeError:
    """Return the error for an event type that a ledger does not hold."""
    return TypeError(f"event of an unknown type in the {ledger} ledger: {event.TYPE}")


INPUT_FOLDS: dict[type[Event], EventFold[object]] = {
    InputRejected: ignore,
    InputQuarantined: ignore,
    InputRetried: ignore,
}
"""Part of every table: rejected and quarantined inputs are not held in the state."""


class KeepsClockStep(Protocol):
    """A state with the last step of the host's clock."""

    clock_step: ClockStepped | None


def note_clock_step(state: KeepsClockStep, event: ClockStepped, fact: Fact) -> None:
    """Keep the step for the clock of the lane's next owner."""
    state.clock_step = event


def folding(ledger: str, folds: Mapping[type[Event], EventFold[S]]) -> Callable[[S, Fact], None]:
    """Return the `evolve` of a decider: it folds one event of the ledger by the table of folds.

    It raises TypeError on a type that the table does not have.
    """

    def evolve(state: S, fact: Fact) -> None:
        event = fact.event
        fold = folds.get(type(event))
        if fold is None:
            raise unknown_event(ledger, event)
        fold(state, event, fact)

    return evolve
