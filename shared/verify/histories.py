"""The histories of jobs in Postgres, `job_event`, have a row for each public event of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from asyncpg import Connection

from shared.projections.ledger_events import LedgerEvent
from shared.projections.source import LedgerPartition
from shared.verify.event_types import is_of_job
from shared.verify.rules import Violation

TABLE = "job_event"
COUNTS = f"SELECT ledger, partition, count(*) FROM {TABLE} GROUP BY ledger, partition"  # noqa: S608


@dataclass(frozen=True, slots=True)
class StoredHistories:
    """Rows of each ledger partition, and how many have left by their retention."""

    counts: Mapping[LedgerPartition, int]
    left: int = 0


async def read_counts(conn: Connection) -> dict[LedgerPartition, int]:
    rows = await conn.fetch(COUNTS)
    return {(row["ledger"], row["partition"]): row["count"] for row in rows}


@dataclass(slots=True)
class HistoryRule:
    """Counts rows and events: a row that is lost, of a table or a part of it, is missing here.

    What rows hold is not compared: `berth projections rebuild` does.
    """

    CARRIED: ClassVar[tuple[str, ...]] = ("events",)
    LEDGERS: ClassVar[tuple[str, ...]] = ()
    stored: StoredHistories
    seqs: Mapping[LedgerPartition, int]
    """Ledger partition to the last seq in the rows."""
    name: str = "histories of jobs have every event"
    events: Counter[LedgerPartition] = field(default_factory=Counter)

    def observe(self, event: LedgerEvent) -> None:
        partition = event.ledger, event.partition
        if event.seq <= self.seqs.get(partition, 0) and is_of_job(event.type):
            self.events[partition] += 1

    def finish(self) -> Iterator[Violation]:
        counts = self.stored.counts
        for partition in sorted({*self.events, *counts}):
            rows, events = counts.get(partition, 0), self.events[partition]
            if rows > events or (rows < events and not self.stored.left):
                detail = f"{rows} rows, and the ledger has {events} events of jobs"
                yield Violation(self.name, f"{TABLE} {'-'.join(map(str, partition))}", detail)
        missing = self.events.total() - sum(counts.values())
        if self.stored.left and missing != self.stored.left:
            detail = f"{missing} rows are missing; {self.stored.left} have left by their retention"
            yield Violation(self.name, TABLE, detail)
