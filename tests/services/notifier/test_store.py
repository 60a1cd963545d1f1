"""Targets with many due rows take no turn of another target."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

from services.notifier import store
from services.notifier.core.changes import Notification
from services.notifier.core.pace import FIRST_MS, GIVE_UP_MS, LONGEST_MS

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
        items = await store.read_due(conn, 10_000, ["t/w20/e1"], full, 2)
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


FIRST = (
    "INSERT INTO notification (tenant, target, event_id, at, due_at, body)"
    " SELECT 't', 'w', 'e' || n, $1, $1, '{}' FROM generate_series(1, 200) n"
)
START = 100 * GIVE_UP_MS


async def due(conn: asyncpg.Connection, at_ms: int) -> list[store.Due]:
    return await store.read_due(conn, at_ms, [], [], 2)


async def test_a_webhook_that_fails_is_tried_by_one_row_after_a_pause_as_long_as_it_has_failed(
    database: str,
) -> None:
    """However many rows are due, a day costs it few attempts."""
    conn = await asyncpg.connect(database)
    try:
        await conn.execute(store.TARGET, "t", "w", 1)
        await conn.execute(FIRST, START)
        assert [item.probes for item in await due(conn, START)] == [False, False]
        now, attempts = START, 0
        while items := await due(conn, now):
            assert attempts == 0 or all(item.probes for item in items)
            failure = await store.note_failure(conn, items[0], now, "status 500", now + 1)
            attempts += 1
            assert failure.since_ms == START
            pause = min(max(now - START, FIRST_MS), LONGEST_MS)
            assert await due(conn, now + pause - 1) == []
            now += pause
        assert now >= START + GIVE_UP_MS and 30 < attempts < 40
        row = await conn.fetchrow("SELECT * FROM notification_target")
        assert (row["given_up"], failure.given_up) == (200, 200)
    finally:
        await conn.close()


async def test_a_success_ends_the_pause_and_a_test_does_not_wait_for_it(database: str) -> None:
    conn = await asyncpg.connect(database)
    try:
        await conn.execute(store.TARGET, "t", "w", 1)
        await conn.execute(FIRST, START)
        first, second = await due(conn, START)
        await store.note_failure(conn, first, START, "status 500", START + 1)
        assert await due(conn, START + 1) == []
        tested = Notification("t", "w", 1, "access/0/9/0", START, "{}")
        await store.save(conn, {}, [tested], {})
        (item,) = await due(conn, START + 1)
        assert (item.event_id, item.is_test, item.probes) == ("access/0/9/0", True, False)
        await store.note_test(conn, item, "status 500", False)
        assert await due(conn, START + 1) == []
        await store.note_success(conn, second, START + 2)
        assert [item.probes for item in await due(conn, START + 2)] == [False, False]
    finally:
        await conn.close()


def _rows_read(node: dict[str, Any]) -> int:
    """Return the rows of notifications that the scans of a plan read."""
    own = 0
    if node.get("Relation Name") == "notification":
        read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        own = int(read * node["Actual Loops"])
    return own + sum(_rows_read(child) for child in node.get("Plans", []))
