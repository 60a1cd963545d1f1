"""Lists and counts of jobs read few rows, however many jobs have ended."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from services.gateway.reads.job_queries import (
    JOBS,
    JOBS_OF_ARRAY,
    JOBS_OPEN,
    OPEN_JOBS,
    SUBMISSIONS,
)
from shared.projections.database import connect

pytestmark = pytest.mark.parts

YEAR = """
INSERT INTO job_admission (job_id, partition, tenant, name, user_id, priority_class, workers, gpus,
    array_index, spec, state, reason, detail, submitted_at, decided_at, cancel_requested_at,
    traceparent)
SELECT CASE WHEN n < 60 * size / 100 THEN 'a' || n / array_size || '.' || n % array_size
            ELSE 'j' || n END,
    n % 2, CASE WHEN n < 70 * size / 100 THEN 'big' WHEN n % 100 = 0 THEN 'small' ELSE 'other' END,
    'run-' || n / 1000, 'u', 'normal', 1, 1,
    CASE WHEN n < 60 * size / 100 THEN n % array_size END, '{}',
    CASE WHEN n IN (0, 1) THEN 'deferred' ELSE 'admitted' END, '', '', n, n, 0, ''
FROM (SELECT $1::int AS size, $1::int / 100 AS array_size) s, generate_series(0, size - 1) n
"""
PLACED = """
INSERT INTO job_placement (job_id, partition, tenant, attempt, phase, enqueued_at, waiting_since,
    placed_at, started_at, ended_at, reason, held_reason, short_gpus, preemptions, gpu_ms, ran_ms,
    nodes)
SELECT job_id, partition, tenant, 1, CASE WHEN decided_at % ($1::int / 100) = 7 THEN 'running'
    ELSE 'succeeded' END, decided_at, decided_at, 0, 0, decided_at, '', '', 0, 0, 0, 0, '[]'
FROM job_admission
WHERE state = 'admitted'
    AND decided_at NOT BETWEEN 70 * $1::int / 100 - 3 AND 70 * $1::int / 100 - 1
    AND decided_at <> $1::int - 1
"""
SIZE = int(os.environ.get("BERTH_YEAR_JOBS", "20000"))
"""Jobs of a year in small, or as many as are asked for: 60 arrays of a hundredth of them and a
tenth of others belong to one tenant. Two are deferred, three of the tenant and one of another are
admitted and not placed yet; one in a hundredth of them runs."""
ARRAY = SIZE // 100
FEW = 2000
"""Rows that a query may read, of however many there are."""


@pytest.fixture
async def year(database: str) -> AsyncIterator[asyncpg.Connection]:
    conn = await connect(database)
    await conn.execute("SET search_path TO berth")
    await conn.execute("INSERT INTO pool VALUES ('a', 0, 1, '{}'), ('b', 1, 1, '{}')")
    await conn.execute(YEAR, SIZE, timeout=600)
    await conn.execute(PLACED, SIZE, timeout=600)
    await conn.execute("ANALYZE")
    yield conn
    await conn.close()


async def read(
    conn: asyncpg.Connection, tenant: str, sql: str, *values: object
) -> tuple[list[dict[str, Any]], int]:
    """Return the rows that a tenant's gateway gets, and how many rows of jobs are read for them."""
    async with conn.transaction():
        await conn.execute(f"SET LOCAL ROLE berth_gateway; SET LOCAL app.tenant = '{tenant}'")
        # Tables as small as these would be read whole.
        for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin"):
            await conn.execute(f"SET LOCAL enable_{way} = off")
        rows = [dict(row) for row in await conn.fetch(sql, *values)]
        explain = "EXPLAIN (ANALYZE, FORMAT JSON) "
        [plan] = json.loads(await conn.fetchval(explain + sql, *values))
    return rows, sum(rows_of(plan["Plan"]))


def rows_of(node: dict[str, Any]) -> Iterator[int]:
    """Yield the rows that each scan of jobs read."""
    if node.get("Relation Name", "").startswith("job_"):
        shown = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        yield round(node["Actual Loops"] * shown)
    for child in node.get("Plans", ()):
        yield from rows_of(child)


async def test_after_a_year_lists_and_counts_read_few_rows(year: asyncpg.Connection) -> None:
    rows, taken = await read(year, "big", OPEN_JOBS, "big")
    assert sum(row["jobs"] for row in rows) == 70 + 2 + 3 and taken < FEW
    assert sum(row["running"] for row in rows) == 70
    rows, taken = await read(year, "other", OPEN_JOBS, "other")
    assert sum(row["jobs"] for row in rows) == 30 + 1 and taken < FEW

    first = (None,) * 5
    rows, taken = await read(year, "big", SUBMISSIONS, "big", *first, 50)
    assert [row["is_array"] for row in rows] == [False] * 50 and taken < FEW
    rows, taken = await read(year, "big", SUBMISSIONS, "big", None, None, None, 60 * ARRAY, "a", 5)
    counts = ("jobs", "running", "succeeded", "pending", "failed", "cancelled")
    assert [[row[name] for name in counts] for row in rows] == [[ARRAY, 1, ARRAY - 1, 0, 0, 0]] * 5
    assert taken < 2 * 5 * ARRAY + FEW, "the jobs of five arrays, in two ledgers"
    for prefixes in (("nothing", None, None), (None, None, "nothing"), (None, None, "a7.")):
        rows, taken = await read(year, "big", SUBMISSIONS, "big", *prefixes, None, None, 50)
        assert len(rows) == (prefixes[2] == "a7.") and taken < 2 * ARRAY + FEW
    rows, taken = await read(year, "small", SUBMISSIONS, "small", *first, 50)
    assert len(rows) == 50 and taken < FEW

    none = (None,) * 4
    rows, taken = await read(year, "small", JOBS, "small", None, *none, None, 50)
    assert len(rows) == 50 and taken < FEW
    rows, taken = await read(year, "big", JOBS_OPEN, "big", "running", *none, None, 50)
    assert {row["phase"] for row in rows} == {"running"} and taken < FEW
    array = (None, None, None, "a7", None, None)
    rows, taken = await read(year, "big", JOBS_OF_ARRAY, "big", *array, ARRAY)
    assert len(rows) == ARRAY and taken < 2 * ARRAY + FEW
