"""Rows are a fold of ledgers: independent of batching, and projected exactly once."""

from __future__ import annotations

import random

import pytest

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobMigrated,
    JobRequeued,
    JobResized,
    JobSucceeded,
)
from shared.contracts.nodes import NodeHealthNoted
from shared.contracts.placement import Allocation, JobEnqueued
from shared.projections.cursor import CursorMoved
from shared.projections.database import SCHEMA, connect
from shared.projections.migrate import migrate
from shared.projections.models import TABLES
from shared.projections.project import project
from shared.projections.rebuild import hashes
from shared.projections.source import Source
from tests.shared.projections.history import SPEC, history, project_all

COLUMNS = """
SELECT column_name AS name, data_type AS type FROM information_schema.columns
WHERE table_schema = 'berth' AND table_name = $1
"""
POSTGRES_TYPES = {
    "text": "text",
    "int": "integer",
    "bigint": "bigint",
    "float8": "double precision",
    "bool": "boolean",
}


async def test_every_table_has_the_columns_and_types_of_its_row_class(database: str) -> None:
    conn = await connect(database)
    stored = {table.name: await conn.fetch(COLUMNS, table.name) for table in TABLES}
    await conn.close()
    for table in TABLES:
        types = {name: POSTGRES_TYPES[sql_type] for name, sql_type in table.types.items()}
        assert types == {row["name"]: row["type"] for row in stored[table.name]}, table.name


async def test_the_gpu_time_of_every_attempt_is_the_jobs_and_its_tenants(database: str) -> None:
    broker = MemoryBroker()
    pen, of_red = LedgerWriter(broker, "placement"), {"job_id": "j1", "tenant": "red"}
    pen.write([JobEnqueued(**of_red, submitted_at=1, spec=SPEC)])
    pen.write([JobRequeued(**of_red, attempt=2, reason="higher_class", gpu_s=2.5)])
    pen.write([JobRequeued(**of_red, attempt=3, reason="start_failed")])
    pen.write([JobAttemptFailed(**of_red, attempt=3, reason="worker_failed", gpu_s=0.25)])
    pen.write([JobSucceeded(**of_red, attempt=4, ran_ms=40, gpu_s=0.0801)])
    await project_all(database, broker)
    conn = await connect(database)
    gpu_ms = await conn.fetchrow(
        "SELECT j.gpu_ms AS job, u.gpu_ms AS tenant FROM berth.job_placement j"
        " JOIN berth.tenant_usage u USING (tenant)"
    )
    await conn.close()
    assert tuple(gpu_ms or ()) == (2830, 2830)


async def test_any_batching_gives_the_same_rows(database: str) -> None:
    broker = history()
    await project_all(database, broker)
    conn = await connect(database)
    expected = await hashes(conn, SCHEMA)
    for seed in range(3):
        await conn.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
        await migrate(database)
        await project_all(database, broker, random.Random(seed))
        assert await hashes(conn, SCHEMA) == expected
    await conn.close()


async def test_migrations_and_resizes_are_counted_and_nodes_have_a_health(database: str) -> None:
    broker = history(1)
    pen = LedgerWriter(broker, "placement", 1)
    lease = Allocation(rank=0, node_id="n2", gpus=(0, 1))
    pen.write(
        [
            JobEnqueued(job_id="k", tenant="red", submitted_at=1, spec=SPEC),
            JobMigrated(
                job_id="k",
                tenant="red",
                attempt=1,
                reason="drain",
                from_nodes=("n1",),
                to_nodes=("n2",),
                target=(lease,),
            ),
            JobResized(
                job_id="k",
                tenant="red",
                attempt=1,
                reason="grow",
                from_workers=1,
                to_workers=2,
                target=(lease,),
            ),
            NodeHealthNoted(node_id="n2", fault_id="f", slowdown=2, health=0.5),
        ]
    )
    await project_all(database, broker)
    conn = await connect(database)
    row = await conn.fetchrow("SELECT phase, moves, reason FROM job_placement WHERE job_id = 'k'")
    assert tuple(row) == ("stopping", 2, "grow")
    reasons = await conn.fetch("SELECT type FROM why_waiting WHERE job_id = 'k' ORDER BY seq, idx")
    assert [row["type"] for row in reasons][1:] == ["job.migrated.v1", "job.resized.v1"]
    assert await conn.fetchval("SELECT health FROM node WHERE node_id = 'n2'") == 0.5
    assert await conn.fetchval("SELECT health FROM node WHERE node_id = 'n1'") == 1.0
    await conn.close()


async def test_projecting_again_from_the_stored_cursors_adds_nothing(database: str) -> None:
    broker = history()
    await project_all(database, broker)
    conn = await connect(database)
    before = await hashes(conn, SCHEMA)
    await project_all(database, broker)
    assert await hashes(conn, SCHEMA) == before
    await conn.close()


async def test_a_second_projector_is_refused_by_the_cursor(database: str) -> None:
    broker = history(3)
    conn = await connect(database)
    source = Source(MemoryLog(broker), 1)
    await source.start()
    batches = await source.poll(0.1, 1000)
    await project(conn, batches)
    rows = await hashes(conn, SCHEMA)
    with pytest.raises(CursorMoved, match="is not at offset"):
        await project(conn, batches)
    assert await hashes(conn, SCHEMA) == rows
    await source.stop()
    await conn.close()


async def test_the_views_join_the_rows_of_a_job_from_both_ledgers(database: str) -> None:
    await project_all(database, history())
    conn = await connect(database)
    phases = {r["job_id"]: r["phase"] for r in await conn.fetch("SELECT job_id, phase FROM job")}
    assert phases["j0"] == "succeeded" and phases["j9"] == "rejected" and phases["j4"] == "waiting"
    why = await conn.fetch(
        "SELECT type, at, until FROM why_waiting WHERE job_id = 'j4' ORDER BY at"
    )
    assert [r["type"] for r in why] == ["job.admitted.v1", "job.enqueued.v1", "job.held.v1"]
    usage = await conn.fetchrow("SELECT * FROM usage_by_tenant")
    assert usage["tenant"] == "red" and usage["succeeded"] > 10 and usage["gpu_ms"] > 0
    assert not await conn.fetchval("SELECT bool_or(usable) FROM gpu")
    assert await conn.fetchval("SELECT max(used_milli) FROM gpu") == 0
    spec = await conn.fetchval("SELECT spec FROM job WHERE job_id = 'j0'")
    assert "run" not in spec and "env" not in spec
    queue = await conn.fetch("SELECT job_id, held_reason FROM queue")
    assert {r["job_id"] for r in queue} == {"j4", "j14", "j24"}
    await conn.close()
