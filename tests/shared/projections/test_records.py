"""Ended jobs, and what is old besides, leave Postgres by month; each table has its rule."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import asyncpg
import pytest

from shared.bus.archive.folder_store import FolderStore
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobSucceeded
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.placement import JobEnqueued
from shared.contracts.rejected import InputRejected
from shared.ledger.errors import ArchiveUnreachable
from shared.projections import records
from shared.projections.database import connect
from shared.projections.rebuild import TABLE_NAMES, rebuild
from shared.projections.records import DATED, JOB_TABLES, KEPT, TABLES, RecordRetention, read_marks
from shared.projections.retention import Retention, month_end
from shared.projections.source import Source
from shared.verify.readmodels import ReadModelRule, read_stored_rows
from tests.shared.projections.history import SPEC, project_all, run_job
from tests.shared.projections.test_retention import (
    DECEMBER,
    MARCH,
    NOVEMBER,
    NOW_MS,
    RUNNING,
    archive,
    let_leave,
)

DAYS = 80.0
"""Before the 9th of March: November is over, December is not."""
ARRAY = ("sweep.0", "sweep.1")


def old_months() -> MemoryBroker:
    """Jobs of November and December, an array that ended in both, and old rows of other tables."""
    broker = MemoryBroker()
    access, admission, priority, placement = (
        LedgerWriter(broker, name) for name in ("access", "admission", "priority", "placement")
    )
    refused = {"command_type": "pool.set.v1", "of": "p", "reason": "unknown", "principal": "key:k"}
    access.write([CommandRefused(command_id="c-pool", **refused)], at=NOVEMBER)
    for at, numbers in ((NOVEMBER, range(10)), (DECEMBER, range(10, 20))):
        for pen in (admission, priority, placement):
            pen.at = at
        for number in numbers:
            run_job(admission, priority, placement, number)
        if at == NOVEMBER:
            submit_array(admission, placement)
        index = int(at == DECEMBER)
        placement.write([JobSucceeded(job_id=ARRAY[index], tenant="red", attempt=1, ran_ms=40)])
        admission.write([InputRejected(topic="t", partition=0, offset=4, reason="r", sha256="ab")])
    admission.write([CommandRefused(command_id="c-late", **refused)], at=MARCH)
    return broker


def submit_array(admission: LedgerWriter, placement: LedgerWriter) -> None:
    admission.write(
        [
            CommandAccepted(command_id="c-array", command_type="job.submit.v1", of="sweep"),
            *(
                JobAdmitted(job_id=j, tenant="red", submitted_at=1, spec=SPEC, array_index=n)
                for n, j in enumerate(ARRAY)
            ),
        ]
    )
    placement.write([JobEnqueued(job_id=j, tenant="red", submitted_at=1, spec=SPEC) for j in ARRAY])


def exported(tmp_path: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows in the files of each table."""
    rows: dict[str, list[dict[str, str]]] = {}
    for path in sorted((tmp_path / "archive" / "read-models").rglob("*.csv.gz")):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        rows.setdefault(path.parent.parent.name, []).extend(csv.DictReader(lines))
    return rows


async def keys(conn: asyncpg.Connection, table: str, key: str) -> set[str]:
    return {row[0] for row in await conn.fetch(f"SELECT {key} FROM {table}")}  # noqa: S608


async def leave(conn: asyncpg.Connection, store: FolderStore, days: float = DAYS) -> None:
    while await RecordRetention(store, days).step(conn, NOW_MS):
        continue


async def test_every_table_has_a_rule(database: str) -> None:
    conn = await connect(database)
    rows = await conn.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'berth'")
    await conn.close()
    assert {row["tablename"] for row in rows} == {*TABLES, *KEPT}
    assert not set(TABLES) & KEPT.keys() and set(TABLE_NAMES) <= {*TABLES, *KEPT}


async def test_a_month_leaves_with_all_that_belongs_to_its_jobs(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "JOBS", 3)
    await project_all(database, old_months())
    conn = await connect(database)
    key_of = {table: key for table, (key, _) in DATED.items()}
    key_of |= {"job_admission": "job_id", "job_placement": "job_id", "allocation": "allocation_id"}
    before = {table: await keys(conn, table, key) for table, key in key_of.items()}
    events = await conn.fetchval("SELECT count(*) FROM job_event")
    await leave(conn, archive(tmp_path))
    rows, marks = exported(tmp_path), await read_marks(conn)
    assert set(rows) == set(TABLES)
    for table, key in key_of.items():
        left = [row[key] for row in rows[table]]
        assert left and len(left) == len(set(left)) == marks[table].row_count
        assert before[table] - set(left) == await keys(conn, table, key), table
        assert marks[table].before_at == marks[table].leaving_at == month_end(NOVEMBER)
    assert await conn.fetchval("SELECT count(*) FROM job_event") + len(rows["job_event"]) == events
    open_ones = {f"j{RUNNING}", *ARRAY}
    assert open_ones <= await keys(conn, "job_admission", "job_id")
    assert {f"c{RUNNING}", "c-array", "c-late"} <= await keys(conn, "command", "command_id")
    assert "c-pool" in {row["command_id"] for row in rows["command"]}
    # With December the array has ended: its job of November leaves with that of December.
    await leave(conn, archive(tmp_path), 30)
    assert await keys(conn, "job_admission", "job_id") == {f"j{RUNNING}", "j14"}
    assert not await conn.fetchval("SELECT count(*) FROM job_event WHERE job_id LIKE 'sweep.%'")
    assert len(list((tmp_path / "archive/read-models/job_admission/2023-12").iterdir())) > 0
    await conn.close()


async def test_nothing_leaves_without_its_files(database: str, tmp_path: Path) -> None:
    await project_all(database, old_months())
    conn = await connect(database)
    before = await keys(conn, "job_admission", "job_id")
    with pytest.raises(ArchiveUnreachable):
        await leave(conn, FolderStore(tmp_path / "not-mounted"))
    assert await keys(conn, "job_admission", "job_id") == before
    await leave(conn, archive(tmp_path), 300)
    assert await keys(conn, "job_admission", "job_id") == before
    await conn.close()


async def verified(conn: asyncpg.Connection, broker: MemoryBroker) -> list[str]:
    """Return where the rows are not what a fold of the ledgers gives."""
    rule = ReadModelRule(await read_stored_rows(conn))
    source = Source(MemoryLog(broker), 2)
    await source.start()
    while not source.caught_up:
        for batch in await source.poll(0.01, 1000):
            for event in batch.events:
                rule.observe(event)
    await source.stop()
    return [violation.position for violation in rule.finish()]


@pytest.mark.parametrize("history_days", [0.0, 30.0])
async def test_rebuild_and_verify_count_what_has_left(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history_days: float
) -> None:
    monkeypatch.setattr(records, "JOBS", 3)
    broker = old_months()
    await project_all(database, broker)
    conn = await connect(database)
    if history_days:
        await let_leave(conn, Retention(archive(tmp_path), history_days))
    # In the middle of a month: some of its jobs have left, others are about to.
    assert await RecordRetention(archive(tmp_path), DAYS).step(conn, NOW_MS)
    marks = await read_marks(conn)
    assert marks["job_admission"].before_at < marks["job_admission"].leaving_at
    assert await verified(conn, broker) == []
    result = await rebuild(database, MemoryLog(broker), 2, swap=True)
    assert result.different == []
    assert result.left == {table: mark.row_count for table, mark in marks.items()}
    await leave(conn, archive(tmp_path))
    assert await verified(conn, broker) == []
    assert (await rebuild(database, MemoryLog(broker), 2, swap=False)).different == []
    lost = {table: f"DELETE FROM {table} WHERE {key} = $1" for table, key in LOST.items()}  # noqa: S608
    for table, delete in lost.items():
        await conn.execute(delete, "j14" if table in JOB_TABLES else "c14")
    assert await verified(conn, broker) == ["job_admission j14", "command c14"]
    different = (await rebuild(database, MemoryLog(broker), 2, swap=False)).different
    assert different == ["command", "job_admission"]
    await conn.close()


LOST = {"job_admission": "job_id", "command": "command_id"}


async def test_an_old_row_that_is_lost_shows_in_the_count(database: str, tmp_path: Path) -> None:
    broker = old_months()
    await project_all(database, broker)
    conn = await connect(database)
    await leave(conn, archive(tmp_path))
    await conn.execute("UPDATE retention SET row_count = row_count - 1 WHERE name = 'allocation'")
    assert await verified(conn, broker) == ["allocation"]
    await conn.close()


async def test_the_projector_may_let_records_leave(database: str, tmp_path: Path) -> None:
    """Rows leave with the projector's rights, under row security."""
    await project_all(database, old_months())
    conn = await connect(database)
    await conn.execute("SET ROLE berth_projector")
    await leave(conn, archive(tmp_path))
    assert (await read_marks(conn))["job_admission"].row_count > 0
    await conn.close()
