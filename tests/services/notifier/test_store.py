"""Targets with many due rows take no turn of another target."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

from services.notifier import store

pytestmark = pytest.mark.process
TARGETS = (
    "INSERT INTO notification_target (tenant, target, created_at)"
    " SELECT 't', 'w' || i, 1 FROM generate_series(0, 20) i"
)
ROWS = (
    "INSERT INTO notification (tenant, target, event_id, at, due_at, body)"
    " SELECT 't', 'w' || i, 'e' || n, n, n, '{}' FROM generate_series(1, 20) i,"
    " generate_series(1, 2000) n UNION ALL SELECT 't', 'w0', 'e1', 1, 9000, '{}'"
)


async def test_dead_targets_with_many_due_rows_cost_a_few_rows_each(database: str) -> None:
    conn = await asyncpg.connect(database)
    try:
        await conn.execute(TARGETS)
        await conn.execute(ROWS)
        await conn.execute("ANALYZE notification, notification_target")
        full = [f"t/w{i}" for i in range(1, 20)]
        items = await store.due(conn, 10_000, ["t/w20/e1"], full, 2)
        assert [(item.target, item.event_id) for item in items] == [
            ("w20", "e2"),
            ("w0", "e1"),
            ("w20", "e3"),
        ]
        explain = "EXPLAIN (ANALYZE, FORMAT JSON) " + store.DUE
        plan = json.loads(await conn.fetchval(explain, 10_000, [], 2, []))[0]["Plan"]
        assert _rows_read(plan) < 200
    finally:
        await conn.close()


def _rows_read(node: dict[str, Any]) -> int:
    """Return the rows of notifications that the scans of a plan read."""
    own = 0
    if node.get("Relation Name") == "notification":
        read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        own = int(read * node["Actual Loops"])
    return own + sum(_rows_read(child) for child in node.get("Plans", []))
