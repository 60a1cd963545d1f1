"""The use of late is read by pool, by tenant, and no further back than it counts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from services.gateway.reads.share_queries import HALF_LIVES, SHARES
from shared.projections.database import connect
from shared.projections.llm_usage import DAY_MS, HOUR_MS

NOW_MS = 10_000 * DAY_MS
FILL = """
INSERT INTO pool (pool, partition, time_scale, settings, deleted_at) VALUES
    ('day', 0, 1, '{"half_life_s": 86400}', 0), ('fast', 1, 10, '{"half_life_s": 864000}', 0),
    ('week', 2, 1, '{}', 0), ('gone', 3, 1, '{}', 1);
INSERT INTO tenant (tenant, default_pool, weight, active, registered_at)
    SELECT 't' || n, 'day', 1, true, 1 FROM generate_series(0, 3) n;
"""
USE = """
INSERT INTO job_usage (usage_id, partition, day_at, tenant, user_id, gpu_ms, starts, waited_ms,
    succeeded, failed, cancelled, preempted, cost_millionths)
VALUES ($1, $2, $3, $4, '', $5, 0, 0, 0, 0, 0, 0, 0)
"""


@pytest.fixture
async def pools(database: str) -> AsyncIterator[asyncpg.Connection]:
    """Three pools whose use halves in a day of wall time twice, and in a week."""
    conn = await connect(database)
    await conn.execute("SET search_path TO berth")
    await conn.execute(FILL)
    yield conn
    await conn.close()


async def use(
    conn: asyncpg.Connection, lane: int, days_ago: float, hours: int, tenant: str = "t0"
) -> None:
    day_at = int(NOW_MS - days_ago * DAY_MS)
    usage_id = json.dumps([lane, day_at, tenant])
    await conn.execute(USE, usage_id, lane, day_at, tenant, hours * HOUR_MS)


async def hours(
    conn: asyncpg.Connection, tenant: str | None = None, pool: str | None = None
) -> dict[tuple[str, str], float]:
    rows = await conn.fetch(SHARES, tenant, pool, float(NOW_MS), HALF_LIVES)
    return {
        (row["pool"], row["tenant"]): row["decayed_gpu_hours"]
        for row in rows
        if row["decayed_gpu_hours"]
    }


async def test_use_halves_by_the_half_life_of_its_pool(pools: asyncpg.Connection) -> None:
    for lane in range(4):
        await use(pools, lane, 7, 1280)
    assert await hours(pools) == pytest.approx(
        {("day", "t0"): 10.0, ("fast", "t0"): 10.0, ("week", "t0"): 640.0}
    )


async def test_a_tenant_and_a_pool_select_rows(pools: asyncpg.Connection) -> None:
    for lane in range(3):
        for tenant in ("t0", "t1"):
            await use(pools, lane, 0, 1, tenant)
    assert set(await hours(pools, pool="week")) == {("week", "t0"), ("week", "t1")}
    assert set(await hours(pools, "t1", "day")) == {("day", "t1")}
    assert len(await hours(pools)) == 6


async def test_use_before_all_that_counts_is_not_read(pools: asyncpg.Connection) -> None:
    await use(pools, 0, HALF_LIVES - 1, 2**29)
    assert await hours(pools) == pytest.approx({("day", "t0"): 1.0})
    await use(pools, 0, HALF_LIVES + 1, 2**31)
    assert await hours(pools) == pytest.approx({("day", "t0"): 1.0})


async def test_a_tenant_reads_no_use_of_others(pools: asyncpg.Connection) -> None:
    """The plan reads the days of one tenant in a pool by the index alone."""
    await pools.execute(
        "INSERT INTO job_usage SELECT 'u' || n, 0, n % 1000 * 86400000::bigint, 't' || n % 4, n,"
        " 1, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(1, 40000) n"
    )
    await pools.execute("ANALYZE")
    now_ms = 1000.0 * DAY_MS
    rows = await pools.fetch(
        f"EXPLAIN (ANALYZE, FORMAT JSON) {SHARES}", "t1", "day", now_ms, HALF_LIVES
    )
    [usage] = scans(json.loads(rows[0][0])[0]["Plan"])
    assert usage["Index Name"] == "job_usage_of_tenant"
    assert usage["Actual Rows"] * usage["Actual Loops"] < 40_000 / 1000 * (HALF_LIVES + 1)


def scans(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes of a plan that read the use by an index, or the table without one."""
    children = plan.get("Plans", [])
    below = [scan for child in children for scan in scans(child)]
    reads = str(plan.get("Index Name", "")).startswith("job_usage") or (
        plan.get("Relation Name") == "job_usage" and not below
    )
    return [plan] if reads else below
