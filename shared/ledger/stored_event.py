"""Events as a record of a ledger holds them."""

from __future__ import annotations

import msgspec

from shared.contracts.base import Event
from shared.contracts.codec import encode_event
from shared.ledger.record import StoredEvent


def stored_event(event: Event, cause: str = "", traceparent: str = "") -> StoredEvent:
    """Return the event with its encoded data; cause and trace are those of its fact."""
    data = msgspec.Raw(encode_event(event))
    return StoredEvent(event.TYPE, event.subject, data, cause, traceparent)
