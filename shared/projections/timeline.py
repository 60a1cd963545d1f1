"""`job_event`: every public event of every job; its history and why it waited are views."""

from __future__ import annotations

import msgspec
from asyncpg import Connection

from shared.contracts.base import EVENTS
from shared.projections.ledger_events import LedgerEvent

COLUMNS = (
    "ledger",
    "partition",
    "seq",
    "idx",
    "at",
    "type",
    "job_id",
    "tenant",
    "data",
    "cause",
    "traceparent",
)
JOB_TYPES = frozenset(
    name
    for name, cls in EVENTS.items()
    if cls.PUBLIC and (cls.SUBJECT == "job_id" or "job_id" in cls.model_fields)
)
DROPPED = ("spec", "principal")
"""The job's row has it, and the audit; a command line or a key belongs in no history."""


def data_of(line: LedgerEvent) -> str:
    if any(name in line.data for name in DROPPED):
        kept = {k: v for k, v in line.data.items() if k not in DROPPED}
        return msgspec.json.encode(kept).decode()
    return line.raw.decode()


def row_of(line: LedgerEvent) -> tuple[object, ...]:
    return (
        line.ledger,
        line.partition,
        line.seq,
        line.index,
        line.at,
        line.type,
        line.data.get("job_id", ""),
        line.data.get("tenant", ""),
        data_of(line),
        line.cause,
        line.traceparent,
    )


async def project(conn: Connection, lines: list[LedgerEvent]) -> None:
    rows = [row_of(line) for line in lines if line.type in JOB_TYPES]
    if rows:
        await conn.copy_records_to_table("job_event", records=rows, columns=COLUMNS)
