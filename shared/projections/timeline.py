"""`job_event`: every public event of every job; views derive history and wait reasons from it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from asyncpg import Connection

from shared.contracts.codec import event_classes
from shared.projections.ledger_events import LedgerEvent

JOB_TYPES = frozenset(
    name
    for name, cls in event_classes().items()
    if cls.PUBLIC and (cls.SUBJECT == "job_id" or "job_id" in cls.model_fields)
)
DROPPED = frozenset({"spec", "principal"})
"""Fields that other read models hold, where a command line or a key id is protected."""


class JobEventRow(NamedTuple):
    """One event; `data` is its JSON without the dropped fields."""

    ledger: str
    partition: int
    seq: int
    idx: int
    at: int
    type: str
    job_id: str
    tenant: str
    data: str
    cause: str
    traceparent: str


def public_data(event: LedgerEvent) -> str:
    """Return the data of the event as JSON, without the dropped fields."""
    if DROPPED.isdisjoint(event.data):
        return event.raw.decode()
    public = {k: v for k, v in event.data.items() if k not in DROPPED}
    return msgspec.json.encode(public).decode()


def job_event_row(event: LedgerEvent) -> JobEventRow:
    return JobEventRow(
        event.ledger,
        event.partition,
        event.seq,
        event.index,
        event.at,
        event.type,
        event.data.get("job_id", ""),
        event.data.get("tenant", ""),
        public_data(event),
        event.cause,
        event.traceparent,
    )


async def project(conn: Connection, events: list[LedgerEvent]) -> None:
    """Append the rows of all job events with one COPY."""
    rows = [job_event_row(event) for event in events if event.type in JOB_TYPES]
    if rows:
        await conn.copy_records_to_table("job_event", records=rows, columns=JobEventRow._fields)
