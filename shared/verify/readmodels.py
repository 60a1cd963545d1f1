"""The rows in Postgres equal a fold of the ledgers up to the cursors of the projector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from asyncpg import Connection

from shared.projections import cursor
from shared.projections.ledger_events import LedgerEvent
from shared.projections.records import read_marks
from shared.projections.retention import Mark
from shared.projections.source import LedgerPartition
from shared.verify.histories import read_counts
from shared.verify.llm_rows import QUERIES as LLM_QUERIES
from shared.verify.llm_rows import read_rows
from shared.verify.row_store import Figures, RowStore, side_by_side
from shared.verify.rules import Violation

JOBS = "SELECT job_id, phase, attempt, gpu_ms, ended_at FROM job_placement"
ADMISSIONS = "SELECT job_id, state FROM job_admission"
ALLOCATIONS = "SELECT allocation_id, job_id, node_id, gpu_milli, released_at > 0 FROM allocation"
COMMANDS = "SELECT command_id, ledger, accepted, answers FROM command"
DEAD_LETTERS = "SELECT dead_id, topic, log_offset, sha256, state FROM dead_letter WHERE topic <> ''"
QUERIES = {
    "job_placement": JOBS,
    "job_admission": ADMISSIONS,
    "allocation": ALLOCATIONS,
    "command": COMMANDS,
    "dead_letter": DEAD_LETTERS,
}

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
NEW: Figures = ("", 0, 0, 0, 0)
NO_ANSWER: Figures = ("", False, 0, 0)
STATES = frozenset({"admitted", "deferred", "rejected", "cancelled"})


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of the read models and their cursors, from one snapshot of the database."""

    seqs: Mapping[LedgerPartition, int]
    """Ledger partition to the last seq in the rows."""
    rows: RowStore = field(default_factory=RowStore)
    marks: Mapping[str, Mark] = field(default_factory=dict)
    """Of each table of which rows may have left by their retention."""
    histories: Mapping[LedgerPartition, int] = field(default_factory=dict)
    """Rows of `job_event` by ledger partition."""


async def read_stored_rows(conn: Connection) -> StoredRows:
    """Read cursors and rows in one transaction, so that they are consistent."""
    rows = RowStore()
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        cursors = await cursor.read(conn)
        await read_rows(conn, QUERIES | LLM_QUERIES, rows)
        marks, histories = await read_marks(conn), await read_counts(conn)
    seqs = {partition: c.seq for partition, c in cursors.items()}
    return StoredRows(seqs, rows, marks, histories)


READ_MODELS_RULE = "read models equal the fold"


@dataclass(slots=True)
class ReadModelRule:
    """Compares the rows with a fold of its own, which shares no code with the projections.

    Of each row `kept` has the columns and, last, the time in ms at which it was decided or made;
    of a dead letter whether it was rejected in place of its state.
    """

    CARRIED: ClassVar[tuple[str, ...]] = ("skipped", "retries")
    LEDGERS: ClassVar[tuple[str, ...]] = ()
    stored: StoredRows
    kept: RowStore = field(default_factory=RowStore)
    name: str = READ_MODELS_RULE
    skipped: set[str] = field(default_factory=set)
    retries: dict[str, str] = field(default_factory=dict)
    """Inputs of which a retry was requested, with the state that this led to."""

    def observe(self, event: LedgerEvent) -> None:
        if event.seq > self.stored.seqs.get((event.ledger, event.partition), 0):
            return
        if event.type.startswith("command."):
            self._fold_answer(event)
        elif event.type in ("input.rejected.v1", "input.quarantined.v1"):
            data, is_rejected = event.data, event.type == "input.rejected.v1"
            row = data["topic"], data["offset"], data["sha256"], is_rejected, event.at
            self.kept.put("dead_letter", event.id, row)
        elif event.type.startswith("input."):
            self._fold_settlement(event)
        elif event.ledger == "placement":
            self._fold_placement(event)
        elif event.ledger == "admission" and event.type.startswith("job."):
            state = event.type.split(".")[1]
            if state in STATES:
                self.kept.put("job_admission", event.data["job_id"], (state, event.at))

    def _fold_answer(self, event: LedgerEvent) -> None:
        command_id = event.data["command_id"]
        answers = int(str((self.kept.get("command", command_id) or NO_ANSWER)[2])) + 1
        is_accepted = event.type == "command.accepted.v1"
        self.kept.put("command", command_id, (event.ledger, is_accepted, answers, event.at))

    def _fold_settlement(self, event: LedgerEvent) -> None:
        input_id, verb = event.data["input_id"], event.type.split(".")[1]
        if verb == "skipped":
            self.skipped.add(input_id)
        elif verb == "retried":
            self.retries[input_id] = RETRY_ENDS[event.data["outcome"]]
        else:
            self.retries.setdefault(input_id, "retrying")

    def _fold_placement(self, event: LedgerEvent) -> None:
        if event.type == "allocation.released.v1":
            allocation_id = event.data["allocation_id"]
            row = self.kept.get("allocation", allocation_id)
            if row is not None:
                self.kept.put("allocation", allocation_id, (*row[:3], True, 0))
        elif event.type.startswith("job."):
            self._fold_job(event)

    def _fold_job(self, event: LedgerEvent) -> None:
        data, verb = event.data, event.type.split(".")[1]
        phase, attempt, gpu_ms, ended_at, _ = self.kept.get("job_placement", data["job_id"]) or NEW
        phase = PHASES.get(verb, phase)
        if verb in ("enqueued", "requeued", "placed"):
            attempt = data.get("attempt", 1)
        if verb == "placed":
            for allocation in data["allocations"]:
                key = f"{event.position}/{allocation['rank']}"
                milli = allocation.get("gpu_milli", 1000)
                row = data["job_id"], allocation["node_id"], milli, False, 0
                self.kept.put("allocation", key, row)
        if verb in ("succeeded", "failed", "cancelled"):
            ended_at = event.at
        gpu_ms = int(str(gpu_ms)) + round(data.get("gpu_s", 0.0) * 1000)
        row_of_job = phase, attempt, gpu_ms, ended_at, ended_at
        self.kept.put("job_placement", data["job_id"], row_of_job)

    def finish(self) -> Iterator[Violation]:
        for table in QUERIES:
            yield from self._compare(table)

    def _compare(self, table: str) -> Iterator[Violation]:
        mark, left = self.stored.marks.get(table, Mark()), 0
        for key, row, stored in side_by_side(self.kept.rows(table), self.stored.rows.rows(table)):
            expected = None if row is None else self._columns(table, key, row)
            left_at = 0 if row is None or stored is not None else self._left_at(table, key, row)
            if 0 < left_at < mark.leaving_at:
                left += 1
            elif expected != stored:
                detail = f"stored {stored}, the fold gives {expected}"
                yield Violation(self.name, f"{table} {key}", detail)
        if left != mark.row_count:
            detail = f"{left} old rows are missing; {mark.row_count} have left by their retention"
            yield Violation(self.name, table, detail)

    def _columns(self, table: str, key: str, row: Figures) -> Figures:
        """Return the columns that the row must have in Postgres."""
        if table != "dead_letter":
            return row[:-1]
        state = "skipped" if key in self.skipped else self.retries.get(key, "open")
        return (*row[:-2], "rejected" if row[-2] else state)

    def _left_at(self, table: str, key: str, row: Figures) -> int:
        """Return the time in ms from which a row's age counts; 0 while its job is open."""
        if table in ("command", "dead_letter"):
            return int(str(row[-1]))
        job_id = str(row[0]) if table == "allocation" else key
        placed = self.kept.get("job_placement", job_id)
        if placed is not None:
            return int(str(placed[-1]))
        state, decided_at = self.kept.get("job_admission", job_id) or ("", 0)
        return int(str(decided_at)) if state in ("rejected", "cancelled") else 0
