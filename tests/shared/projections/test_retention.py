"""Histories of ended jobs leave Postgres by month, into files; a rebuild and verify say so."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import asyncpg
import pytest

from shared.bus.archive.folder_store import FolderStore
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.nodes import NodeCordoned
from shared.ledger.errors import ArchiveUnreachable
from shared.ledger.reader import Cursor
from shared.projections import retention
from shared.projections.database import connect
from shared.projections.rebuild import rebuild
from shared.projections.retention import Retention, month_begin, month_end, read_mark
from shared.verify.readmodels import read_stored_rows
from tests.shared.ledger_events import node_joined
from tests.shared.projections.history import project_all, run_job

NOVEMBER, DECEMBER = 1_700_000_000_000, 1_702_000_000_000
MARCH = 1_710_000_000_000
DAY_MS = 86_400_000
RUNNING, REJECTED = 4, 9
"""Numbers of jobs that `run_job` leaves waiting and that it rejects."""


def months() -> MemoryBroker:
    """Ledgers of ten jobs of November and ten of December, and an event of March."""
    broker = MemoryBroker()
    admission, priority, placement = (
        LedgerWriter(broker, name) for name in ("admission", "priority", "placement")
    )
    placement.write([node_joined()])
    for at, numbers in ((NOVEMBER, range(10)), (DECEMBER, range(10, 20))):
        for pen in (admission, priority, placement):
            pen.at = at
        for number in numbers:
            run_job(admission, priority, placement, number)
    placement.write([NodeCordoned(node_id="n1", reason="hot")], at=MARCH)
    return broker


NOW_MS = 1_800_000_000_000
"""Of the host: later than all events."""


def archive(tmp_path: Path) -> FolderStore:
    store = FolderStore(tmp_path / "archive")
    store.create()
    return store


def exported(tmp_path: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for path in sorted((tmp_path / "archive" / "read-models").rglob("*.csv.gz")):
        rows += csv.DictReader(gzip.decompress(path.read_bytes()).decode().splitlines())
    return rows


async def stored(conn: asyncpg.Connection) -> dict[tuple[str, str], str]:
    """Return the data of each event of the table, by job and place."""
    rows = await conn.fetch("SELECT * FROM job_event")
    return {(r["job_id"], f"{r['ledger']}/{r['seq']}/{r['idx']}"): r["data"] for r in rows}


async def let_leave(conn: asyncpg.Connection, kept: Retention) -> None:
    while await kept.step(conn, NOW_MS):
        continue


def test_months_are_those_of_the_calendar_in_utc() -> None:
    assert month_begin(NOVEMBER) == 1_698_796_800_000
    assert month_end(NOVEMBER) == month_begin(DECEMBER) == 1_701_388_800_000
    assert month_end(month_end(NOVEMBER) - 1) == month_end(NOVEMBER)
    assert month_begin(-5) == 0


async def test_a_month_leaves_into_files_row_by_row(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "JOBS", 3)
    await project_all(database, months())
    conn = await connect(database)
    before = await stored(conn)
    # 80 days before the 9th of March is the 20th of December: November is over, December is not.
    kept = Retention(archive(tmp_path), days=80)
    await let_leave(conn, kept)
    after, rows = await stored(conn), exported(tmp_path)
    left = {(r["job_id"], f"{r['ledger']}/{r['seq']}/{r['idx']}"): r["data"] for r in rows}
    assert left and after and len(rows) == len(left)
    assert left | after == before and not left.keys() & after.keys()
    jobs = {f"j{number}" for number in range(10)} - {f"j{RUNNING}"}
    assert {job for job, _ in left} == jobs and f"j{REJECTED}" in jobs
    mark = await read_mark(conn)
    assert mark == (month_end(NOVEMBER), month_end(NOVEMBER), 3, len(left))
    assert not await kept.step(conn, NOW_MS)
    await let_leave(conn, Retention(archive(tmp_path), days=30))
    assert {job for job, _ in await stored(conn)} == {f"j{RUNNING}", "j14"}
    await conn.close()


async def test_a_clock_that_is_ahead_removes_nothing(database: str, tmp_path: Path) -> None:
    broker = months()
    await project_all(database, broker)
    conn = await connect(database)
    before, kept = await stored(conn), Retention(archive(tmp_path), days=80)
    # The host says November: nothing is 80 days old, whatever the ledgers say.
    assert not await kept.step(conn, NOVEMBER)
    # Only ledgers of jobs count: access and throttle follow the clocks of their hosts.
    ahead = Cursor(1, 1, "a", 0, at=NOW_MS).to_json().decode()
    await conn.execute("INSERT INTO cursor VALUES ('access', 9, $1)", ahead)
    await let_leave(conn, kept)
    assert (await read_mark(conn)).before_at == month_end(NOVEMBER)
    assert len(await stored(conn)) < len(before)
    await conn.close()


async def test_nothing_leaves_without_its_file(database: str, tmp_path: Path) -> None:
    await project_all(database, months())
    conn = await connect(database)
    before = await stored(conn)
    with pytest.raises(ArchiveUnreachable):
        await Retention(FolderStore(tmp_path / "not-mounted"), days=30).step(conn, NOW_MS)
    assert await stored(conn) == before and await read_mark(conn) == (0, 0, 0, 0)
    await conn.close()


async def test_a_rebuild_leaves_out_what_has_left_and_nothing_else(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "JOBS", 3)
    broker = months()
    await project_all(database, broker)
    conn = await connect(database)
    # In the middle of a month: some of its jobs have left, others are about to.
    assert await Retention(archive(tmp_path), days=80).step(conn, NOW_MS)
    mark, kept = await read_mark(conn), await stored(conn)
    assert mark.row_count > 0 and mark.before_at < mark.leaving_at
    result = await rebuild(database, MemoryLog(broker), 2, swap=True)
    assert result.different == [] and result.left["job_event"] == mark.row_count
    assert await stored(conn) == kept and await read_mark(conn) == mark
    assert (await read_stored_rows(conn)).marks["job_event"] == mark
    await let_leave(conn, Retention(archive(tmp_path), days=80))
    await conn.execute("DELETE FROM job_event WHERE job_id = 'j11'")
    again = await rebuild(database, MemoryLog(broker), 2, swap=False)
    assert again.different == ["job_event"]
    await conn.close()


async def test_the_projector_may_let_histories_leave(database: str, tmp_path: Path) -> None:
    """Rows leave with the projector's rights, under row security."""
    await project_all(database, months())
    conn = await connect(database)
    await conn.execute("SET ROLE berth_projector")
    await let_leave(conn, Retention(archive(tmp_path), days=80))
    assert (await read_mark(conn)).row_count == len(exported(tmp_path)) > 0
    await conn.close()
