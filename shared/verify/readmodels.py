"""The rows in Postgres equal a fold of the ledgers up to the cursors of the projector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from asyncpg import Connection

from shared.projections import cursor
from shared.projections.ledger_events import LedgerEvent
from shared.projections.retention import read_mark
from shared.projections.source import LedgerPartition
from shared.verify.llm_rows import read_llm_rows
from shared.verify.row_store import RowStore
from shared.verify.rules import Violation

Rows = dict[str, tuple[object, ...]]
"""Key of a row to its other columns."""

JOBS = "SELECT job_id, phase, attempt, gpu_ms, ended_at FROM job_placement"
ADMISSIONS = "SELECT job_id, state FROM job_admission"
ALLOCATIONS = "SELECT allocation_id, job_id, node_id, gpu_milli, released_at > 0 FROM allocation"
COMMANDS = "SELECT command_id, ledger, accepted, answers FROM command"
DEAD_LETTERS = "SELECT dead_id, topic, log_offset, sha256, state FROM dead_letter WHERE topic <> ''"

PHASES = {
    "enqueued": "waiting",
    "requeued": "waiting",
    "placed": "placed",
    "started": "running",
    "preempted": "stopping",
    "migrated": "stopping",
    "resized": "stopping",
    "stop-requested": "stopping",
    "start-failed": "stopping",
    "attempt-failed": "backoff",
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
}
"""Type of a job event to the phase after it."""
RETRY_ENDS = {"decided": "retried", "raised": "raised_again", "not_retained": "not_retained"}
STATES = frozenset({"admitted", "deferred", "rejected", "cancelled"})


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of the read models and their cursors, from one snapshot of the database."""

    seqs: Mapping[LedgerPartition, int]
    """Ledger partition to the last seq in the rows."""
    tables: dict[str, Rows]
    llm: RowStore = field(default_factory=RowStore)
    """The tables of LLM requests."""
    left: int = 0
    """Rows that have left by their retention: they are not compared."""


async def read_stored_rows(conn: Connection) -> StoredRows:
    """Read cursors and rows in one transaction, so that they are consistent."""
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        cursors = await cursor.read(conn)
        tables = {
            "job_placement": keyed(await conn.fetch(JOBS)),
            "job_admission": keyed(await conn.fetch(ADMISSIONS)),
            "allocation": keyed(await conn.fetch(ALLOCATIONS)),
            "command": keyed(await conn.fetch(COMMANDS)),
            "dead_letter": keyed(await conn.fetch(DEAD_LETTERS)),
        }
        llm = await read_llm_rows(conn)
        mark = await read_mark(conn)
    seqs = {partition: c.seq for partition, c in cursors.items()}
    return StoredRows(seqs, tables, llm, mark.row_count)


def keyed(records: Iterable[tuple[object, ...]]) -> Rows:
    return {str(record[0]): tuple(record)[1:] for record in records}


READ_MODELS_RULE = "read models equal the fold"


@dataclass(slots=True)
class ReadModelRule:
    """Compares the rows with a fold of its own, which shares no code with the projections."""

    stored: StoredRows
    name: str = READ_MODELS_RULE
    jobs: dict[str, list[object]] = field(default_factory=dict)
    admissions: Rows = field(default_factory=dict)
    allocations: Rows = field(default_factory=dict)
    commands: dict[str, list[object]] = field(default_factory=dict)
    dead_letters: Rows = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    retries: dict[str, str] = field(default_factory=dict)
    """Inputs of which a retry was requested, with the state that this led to."""

    def observe(self, event: LedgerEvent) -> None:
        if event.seq > self.stored.seqs.get((event.ledger, event.partition), 0):
            return
        if event.type.startswith("command."):
            self._fold_answer(event)
        elif event.type in ("input.rejected.v1", "input.quarantined.v1"):
            data = event.data
            self.dead_letters[event.id] = (data["topic"], data["offset"], data["sha256"])
            if event.type == "input.rejected.v1":
                self.rejected.add(event.id)
        elif event.type.startswith("input."):
            self._fold_settlement(event)
        elif event.ledger == "placement":
            self._fold_placement(event)
        elif event.ledger == "admission" and event.type.startswith("job."):
            state = event.type.split(".")[1]
            if state in STATES:
                self.admissions[event.data["job_id"]] = (state,)

    def _fold_answer(self, event: LedgerEvent) -> None:
        row = self.commands.setdefault(event.data["command_id"], ["", False, 0])
        row[0], row[1] = event.ledger, event.type == "command.accepted.v1"
        row[2] = int(str(row[2])) + 1

    def _fold_settlement(self, event: LedgerEvent) -> None:
        input_id, verb = event.data["input_id"], event.type.split(".")[1]
        if verb == "skipped":
            self.skipped.add(input_id)
        elif verb == "retried":
            self.retries[input_id] = RETRY_ENDS[event.data["outcome"]]
        else:
            self.retries.setdefault(input_id, "retrying")

    def _state_of(self, dead_id: str) -> str:
        if dead_id in self.rejected:
            return "rejected"
        return "skipped" if dead_id in self.skipped else self.retries.get(dead_id, "open")

    def _fold_placement(self, event: LedgerEvent) -> None:
        if event.type == "allocation.released.v1":
            allocation_id = event.data["allocation_id"]
            if allocation_id in self.allocations:
                self.allocations[allocation_id] = (*self.allocations[allocation_id][:3], True)
        elif event.type.startswith("job."):
            self._fold_job(event)

    def _fold_job(self, event: LedgerEvent) -> None:
        data, verb = event.data, event.type.split(".")[1]
        row = self.jobs.setdefault(data["job_id"], ["", 0, 0, 0])
        if verb in PHASES:
            row[0] = PHASES[verb]
        if verb in ("enqueued", "requeued", "placed"):
            row[1] = data.get("attempt", 1)
        if verb == "placed":
            for allocation in data["allocations"]:
                key = f"{event.position}/{allocation['rank']}"
                milli = allocation.get("gpu_milli", 1000)
                self.allocations[key] = (data["job_id"], allocation["node_id"], milli, False)
        if verb in ("succeeded", "failed", "cancelled"):
            row[3] = event.at
        row[2] = int(str(row[2])) + round(data.get("gpu_s", 0.0) * 1000)

    def finish(self) -> Iterator[Violation]:
        folded: dict[str, Rows] = {
            "job_placement": {k: tuple(v) for k, v in self.jobs.items()},
            "job_admission": self.admissions,
            "allocation": self.allocations,
            "command": {k: tuple(v) for k, v in self.commands.items()},
            "dead_letter": {k: (*v, self._state_of(k)) for k, v in self.dead_letters.items()},
        }
        for table, expected in folded.items():
            yield from self._compare(table, expected, self.stored.tables[table])

    def _compare(self, table: str, expected: Rows, stored: Rows) -> Iterator[Violation]:
        for key in sorted(expected.keys() | stored.keys()):
            if expected.get(key) != stored.get(key):
                detail = f"stored {stored.get(key)}, the fold gives {expected.get(key)}"
                yield Violation(self.name, f"{table} {key}", detail)
