"""A rebuild folds the ledgers again and compares the result with the live read models."""

from __future__ import annotations

import asyncpg
import pytest

from shared.bus.logs.memory import MemoryLog
from shared.projections.database import SCHEMA, connect
from shared.projections.rebuild import (
    MISSING,
    REBUILD_SCHEMA,
    RebuildResult,
    has_table,
    hashes,
    rebuild,
)
from shared.projections.retention import Mark, read_mark, store_mark
from tests.shared.projections.history import history, project_all


def test_tables_with_another_hash_are_different() -> None:
    live, rebuilt = {"job_event": "3:7", "node": "1:2"}, {"job_event": "3:7", "node": "1:9"}
    assert RebuildResult(3, live, rebuilt, swapped=False).different == ["node"]
    assert RebuildResult(3, live, live, swapped=True).different == []


async def test_a_rebuild_equals_the_live_rows_and_replaces_them(database: str) -> None:
    broker = history()
    await project_all(database, broker)
    progress: list[int] = []
    result = await rebuild(database, MemoryLog(broker), 2, swap=True, report_events=progress.append)
    assert result.different == [] and result.swapped and result.events == sum(progress) > 100
    conn = await connect(database)
    assert await hashes(conn, SCHEMA) == result.live
    with pytest.raises(asyncpg.InvalidSchemaNameError):
        await conn.execute(f"DROP SCHEMA {REBUILD_SCHEMA}")
    await conn.close()
    await project_all(database, broker)


async def test_a_rebuild_reports_a_table_with_a_changed_row(database: str) -> None:
    broker = history()
    await project_all(database, broker)
    conn = await connect(database)
    await conn.execute("UPDATE job_placement SET gpu_ms = gpu_ms + 1 WHERE job_id = 'j3'")
    result = await rebuild(database, MemoryLog(broker), 2, swap=False)
    assert result.different == ["job_placement"]
    await rebuild(database, MemoryLog(broker), 2, swap=True)
    again = await rebuild(database, MemoryLog(broker), 2, swap=False)
    assert again.different == []
    await conn.close()


async def test_a_rebuild_keeps_what_the_notifier_has_to_send(database: str) -> None:
    broker = history()
    await project_all(database, broker)
    conn = await connect(database)
    await conn.execute(
        "INSERT INTO notification (tenant, target, event_id, at, due_at, body)"
        " VALUES ('ada', 'ci', 'placement/0/1/0', 1, 1, '{}')"
    )
    await rebuild(database, MemoryLog(broker), 2, swap=True)
    assert await conn.fetchval("SELECT event_id FROM notification") == "placement/0/1/0"
    await rebuild(database, MemoryLog(broker), 2, swap=False)
    assert await conn.fetchval("SELECT count(*) FROM notification") == 1
    await conn.close()


@pytest.mark.parametrize("table", ["job_event", "job_placement", "notification"])
async def test_a_table_that_was_dropped_by_hand_is_made_again(database: str, table: str) -> None:
    broker = history()
    await project_all(database, broker)
    conn = await connect(database)
    await conn.execute(f"DROP TABLE {table} CASCADE")
    result = await rebuild(database, MemoryLog(broker), 2, swap=True)
    is_read_model = table in result.live
    assert result.different == ([table] if is_read_model else [])
    assert (result.live.get(table) == MISSING) == is_read_model
    assert await has_table(conn, SCHEMA, table)
    again = await rebuild(database, MemoryLog(broker), 2, swap=False)
    assert again.different == []
    await conn.close()


async def test_old_rows_that_were_deleted_by_hand_are_there_again(database: str) -> None:
    """The mark says that rows may have left, and that none has: which have is not known."""
    broker = history()
    await project_all(database, broker)
    conn = await connect(database)
    rows = await conn.fetchval("SELECT count(*) FROM job_event")
    await store_mark(conn, Mark(1, 2**60, 0, 0))
    await conn.execute(
        "DELETE FROM job_event WHERE job_id = (SELECT min(job_id) FROM job_placement"
        " WHERE ended_at > 0)"
    )
    assert await conn.fetchval("SELECT count(*) FROM job_event") < rows
    result = await rebuild(database, MemoryLog(broker), 2, swap=True)
    assert result.different == ["job_event"]
    assert await conn.fetchval("SELECT count(*) FROM job_event") == rows
    assert await read_mark(conn) == Mark()
    await conn.close()
