"""The rows of Postgres equal a fold of the ledgers up to the projector's own cursors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from asyncpg import Connection

from shared.projections import cursor
from shared.projections.ledger_events import LedgerEvent
from shared.projections.source import LedgerPartition
from shared.verify.rules import Violation

Rows = dict[str, tuple[object, ...]]

JOBS = "SELECT job_id, phase, attempt, gpu_ms, ended_at FROM job_placement"
ADMISSIONS = "SELECT job_id, state FROM job_admission"
LEASES = "SELECT allocation_id, job_id, node_id, gpu_milli, released_at > 0 FROM allocation"
ANSWERS = "SELECT command_id, ledger, accepted, answers FROM command"
DEAD = "SELECT dead_id, topic, log_offset, sha256 FROM dead_letter"
EVENTS = "SELECT count(*) FROM job_event"

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
STATES = {
    "admitted": "admitted",
    "deferred": "deferred",
    "rejected": "rejected",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True)
class Stored:
    """What the read models say, all from one snapshot of the database."""

    upto: Mapping[LedgerPartition, int]
    """Ledger partition to the last seq that the rows contain."""
    tables: dict[str, Rows]


async def stored(conn: Connection) -> Stored:
    """Cursors and rows from one transaction, so that they belong together."""
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        cursors = await cursor.read(conn)
        tables = {
            "job_placement": rows(await conn.fetch(JOBS)),
            "job_admission": rows(await conn.fetch(ADMISSIONS)),
            "allocation": rows(await conn.fetch(LEASES)),
            "command": rows(await conn.fetch(ANSWERS)),
            "dead_letter": rows(await conn.fetch(DEAD)),
        }
    return Stored({place: c.seq for place, c in cursors.items()}, tables)


def rows(records: Iterable[tuple[object, ...]]) -> Rows:
    return {str(record[0]): tuple(record)[1:] for record in records}


@dataclass(slots=True)
class ReadModelsEqual:
    """A fold of its own: it shares no line with the projections that it judges."""

    stored: Stored
    name: str = "read models equal the fold"
    jobs: dict[str, list[object]] = field(default_factory=dict)
    admissions: Rows = field(default_factory=dict)
    leases: Rows = field(default_factory=dict)
    answers: dict[str, list[object]] = field(default_factory=dict)
    dead: Rows = field(default_factory=dict)

    def see(self, line: LedgerEvent) -> None:
        if line.seq > self.stored.upto.get((line.ledger, line.partition), 0):
            return
        if line.type.startswith("command."):
            self._answer(line)
        elif line.type == "input.rejected.v1":
            data = line.data
            key = f"{line.ledger}/{line.position}"
            self.dead[key] = (data["topic"], data["offset"], data["sha256"])
        elif line.ledger == "placement":
            self._placement(line)
        elif line.ledger == "admission" and line.type.startswith("job."):
            state = STATES.get(line.type.split(".")[1])
            if state:
                self.admissions[line.data["job_id"]] = (state,)

    def _answer(self, line: LedgerEvent) -> None:
        row = self.answers.setdefault(line.data["command_id"], ["", False, 0])
        row[0], row[1] = line.ledger, line.type == "command.accepted.v1"
        row[2] = int(str(row[2])) + 1

    def _placement(self, line: LedgerEvent) -> None:
        if line.type == "allocation.released.v1":
            name = line.data["allocation_id"]
            if name in self.leases:
                self.leases[name] = (*self.leases[name][:3], True)
        elif line.type.startswith("job."):
            self._job(line)

    def _job(self, line: LedgerEvent) -> None:
        data, verb = line.data, line.type.split(".")[1]
        row = self.jobs.setdefault(data["job_id"], ["", 0, 0, 0])
        if verb in PHASES:
            row[0] = PHASES[verb]
        if verb in ("enqueued", "requeued", "placed"):
            row[1] = data.get("attempt", 1)
        if verb == "placed":
            for lease in data["allocations"]:
                key = f"{line.position}/{lease['rank']}"
                milli = lease.get("gpu_milli", 1000)
                self.leases[key] = (data["job_id"], lease["node_id"], milli, False)
        if verb in ("succeeded", "failed", "cancelled"):
            row[3] = line.at
        row[2] = int(str(row[2])) + round(data.get("gpu_s", 0.0) * 1000)

    def finish(self) -> Iterator[Violation]:
        folded: dict[str, Rows] = {
            "job_placement": {k: tuple(v) for k, v in self.jobs.items()},
            "job_admission": self.admissions,
            "allocation": self.leases,
            "command": {k: tuple(v) for k, v in self.answers.items()},
            "dead_letter": self.dead,
        }
        for table, expected in folded.items():
            yield from self._compare(table, expected, self.stored.tables[table])

    def _compare(self, table: str, expected: Rows, found: Rows) -> Iterator[Violation]:
        for key in sorted(expected.keys() | found.keys()):
            if expected.get(key) != found.get(key):
                what = f"the ledgers say {expected.get(key)}, the row says {found.get(key)}"
                yield Violation(self.name, f"{table} {key}", what)
