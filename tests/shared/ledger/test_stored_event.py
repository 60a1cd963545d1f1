"""An event is stored with its type, its subject, its data, and where it came from."""

from __future__ import annotations

from shared.contracts.attempts import JobSucceeded
from shared.contracts.codec import decode_event
from shared.ledger.stored_event import stored_event


def test_the_data_are_those_of_the_event() -> None:
    event = JobSucceeded(job_id="j1", tenant="ada", attempt=1)
    stored = stored_event(event, "reports/0/7", "00-1-2-01")
    assert (stored.type, stored.subject) == (JobSucceeded.TYPE, event.subject)
    assert (stored.cause, stored.traceparent) == ("reports/0/7", "00-1-2-01")
    assert decode_event(stored.type, bytes(stored.data)) == event
