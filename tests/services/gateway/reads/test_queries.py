"""The estimate of a queue: whose it is, and that it reads only the end of a tenant's line."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from services.gateway.reads.queries import QUEUE_ESTIMATE
from shared.projections.database import connect

JOBS = 20_000
TENANTS = 4
ESTIMATED = range(1, JOBS - 59)
RUNNING = range(JOBS - 70, JOBS - 59)

FILL = """
INSERT INTO job_placement (job_id, partition, tenant, attempt, phase, enqueued_at, waiting_since,
    placed_at, started_at, ended_at, reason, held_reason, short_gpus, preemptions, gpu_ms, ran_ms,
    nodes)
SELECT 'j' || n, 0, 't' || n % 4, 1,
    CASE WHEN n BETWEEN 19930 AND 19940 THEN 'running' ELSE 'waiting' END,
    n, n, 0, 0, 0, '', '', 0, 0, 0, 0, '[]' FROM generate_series(1, 20000) n;
INSERT INTO job_admission (job_id, partition, tenant, name, user_id, priority_class, workers, gpus,
    spec, state, reason, detail, submitted_at, decided_at, cancel_requested_at, traceparent)
SELECT 'j' || n, 0, 't' || n % 4, 'n', '', 'normal', 1, 1 + n / 4 % 3, '{}',
    'admitted', '', '', n, n, 0, '' FROM generate_series(1, 20000) n;
INSERT INTO job_event (ledger, partition, seq, idx, at, type, job_id, tenant, data, cause,
    traceparent)
SELECT 'priority', 0, n + 60 * k, k, n + 60 * k, 'job.start-estimated.v1', 'j' || n,
    't' || n % 4, n || ' at ' || n + 60 * k, '', ''
FROM generate_series(1, 19940) n, generate_series(0, 1) k;
ANALYZE;
"""
"""Jobs of one pool in lines of four tenants, with 1, 2 and 3 GPUs in turn; the last sixty have no
estimate yet, the others two; the last eleven of those run."""


@pytest.fixture
async def lines(database: str) -> AsyncIterator[asyncpg.Connection]:
    conn = await connect(database)
    await conn.execute("SET search_path TO berth")
    await conn.execute(FILL)
    yield conn
    await conn.close()


def like(job: int, other: int) -> bool:
    """Return whether the other job is in the line of the first, and not behind it, with as many
    GPUs.
    """
    alike = (job - other) % TENANTS == 0 and job // TENANTS % 3 == other // TENANTS % 3
    return alike and other <= job and other not in RUNNING


@pytest.mark.parametrize("job", [JOBS - 3, JOBS // 2])
async def test_a_job_gets_the_last_estimate_of_the_job_before_it(
    lines: asyncpg.Connection, job: int
) -> None:
    before = max(n for n in ESTIMATED if like(job, n))
    expected = (before + 60, f"{before} at {before + 60}")
    rows = await lines.fetch(QUEUE_ESTIMATE, f"t{job % TENANTS}", f"j{job}")
    assert [tuple(row) for row in rows] == [expected]
    assert await lines.fetch(QUEUE_ESTIMATE, "another", f"j{job}") == []


async def test_the_jobs_of_a_long_line_are_not_all_read(lines: asyncpg.Connection) -> None:
    explained = await lines.fetch("EXPLAIN " + QUEUE_ESTIMATE, None, f"j{JOBS - 3}")
    plan = "\n".join(row[0] for row in explained)
    assert "using job_placement_line" in plan and "Seq Scan" not in plan, plan
