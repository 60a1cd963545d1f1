"""Changes as the notifier reads them, from plain events."""

from __future__ import annotations

from services.notifier.core.changes import Change, changes_of
from shared.contracts.base import Event
from shared.ledger.reader import Accepted
from shared.ledger.record import Record, pack
from shared.ledger.stored_event import stored_event

BASE_URL = "https://berth.example.org"


def record_of(ledger: str, *events: Event, at: int = 1, lane: int = 0) -> Accepted:
    """Return an accepted record, the seventh of its lane."""
    record = Record("x", 7, "", "", at, {}, pack([stored_event(event) for event in events]))
    return Accepted(ledger, lane, 7, record)


def change(event: Event, ledger: str = "admission", *, pool: str = "gpu", at: int = 1) -> Change:
    """Return the one change of a record with this event."""
    (one,) = changes_of(record_of(ledger, event, at=at), pool)
    return one
