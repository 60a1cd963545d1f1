"""Tables of folds: what each event type of a ledger does to the state of its decider.

Each service has one such table in its `evolve.py`. A look-up by type costs the same for every
event; a chain of patterns would ask pydantic's slow `isinstance` once per pattern before the hit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from shared.contracts.base import Event
from shared.ledger.decider import Fact

S = TypeVar("S")

EventFold: TypeAlias = Callable[[S, Any, Fact], None]
"""Applies an event of one type, which is that of the fact, to a state."""


def ignore(state: object, event: Event, fact: Fact) -> None:
    """Leave the state as it is."""


def unknown_event(ledger: str, event: Event) -> TypeError:
    """Return the error for an event type that a ledger does not hold."""
    return TypeError(f"event of an unknown type in the {ledger} ledger: {event.TYPE}")
