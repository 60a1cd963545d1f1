"""The rows in Postgres equal a fold of the ledgers up to the cursors of the projector."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from asyncpg import Connection

from shared.projections import cursor
from shared.projections.ledger_events import LedgerEvent
from shared.projections.records import read_marks
from shared.projections.retention import Mark
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
    marks: Mapping[str, Mark] = field(default_factory=dict)
    """Of each table of which rows may have left by their retention."""


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
        marks = await read_marks(conn)
    seqs = {partition: c.seq for partition, c in cursors.items()}
    return StoredRows(seqs, tables, llm, marks)


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
    times: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """Of each table, by key: when a job was decided or ended, or a row was made."""
    retries: dict[str, str] = field(default_factory=dict)
    """Inputs of which a retry was requested, with the state that this led to."""

    def observe(self, event: LedgerEvent) -> None:
        if event.seq > self.stored.seqs.get((event.ledger, event.partition), 0):
            return
        if event.type.startswith("command."):
            self._fold_answer(event)
        elif event.type in ("input.rejected.v1", "input.quarantined.v1"):
            data = event.data
            self.times["dead_letter"][event.id] = event.at
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
                self.times["job_admission"][event.data["job_id"]] = event.at

    def _fold_answer(self, event: LedgerEvent) -> None:
        row = self.commands.setdefault(event.data["command_id"], ["", False, 0])
        row[0], row[1] = event.ledger, event.type == "command.accepted.v1"
        row[2] = int(str(row[2])) + 1
        self.times["command"][event.data["command_id"]] = event.at

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
        mark, left = self.stored.marks.get(table, Mark()), 0
        for key in sorted(expected.keys() | stored.keys()):
            if key not in stored and 0 < self._left_at(table, key) < mark.leaving_at:
                left += 1
            elif expected.get(key) != stored.get(key):
                detail = f"stored {stored.get(key)}, the fold gives {expected.get(key)}"
                yield Violation(self.name, f"{table} {key}", detail)
        if left != mark.row_count:
            detail = f"{left} old rows are missing; {mark.row_count} have left by their retention"
            yield Violation(self.name, table, detail)

    def _left_at(self, table: str, key: str) -> int:
        """Return the time in ms from which a row's age counts; 0 while its job is open."""
        if table in ("command", "dead_letter"):
            return self.times[table][key]
        job_id = str(self.allocations[key][0]) if table == "allocation" else key
        if job_id in self.jobs:
            return int(str(self.jobs[job_id][3]))
        is_ended = self.admissions[job_id][0] in ("rejected", "cancelled")
        return self.times["job_admission"][job_id] if is_ended else 0
