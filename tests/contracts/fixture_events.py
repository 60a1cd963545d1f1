"""The events of the fixtures, by ledger."""

from __future__ import annotations

from pathlib import Path

from shared.contracts.base import EVENTS, Event
from shared.contracts.codec import decode_event

FIXTURES = Path(__file__).parent / "fixtures"


def events_of_ledger(ledger: str) -> list[Event]:
    """Return one recorded event of each current type that the ledger may hold."""
    return [
        decode_event(type_, (FIXTURES / f"{type_}.json").read_bytes())
        for type_, event in sorted(EVENTS.items())
        if ledger in event.LEDGERS
    ]


def event_of_no(ledger: str) -> Event:
    """Return a recorded event that the ledger never holds."""
    return next(
        decode_event(type_, (FIXTURES / f"{type_}.json").read_bytes())
        for type_, event in sorted(EVENTS.items())
        if ledger not in event.LEDGERS
    )
