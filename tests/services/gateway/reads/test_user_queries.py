"""The use of users is that of their open jobs and of what their attempts used before."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Any

import asyncpg
import pytest

from services.gateway.reads.user_queries import FIGURES, USE
from shared.projections.database import connect
from shared.projections.job_usage import JobUsageRow
from shared.projections.jobs import AdmissionRow, PlacementRow

JOBS = (
    ("a1", 0, "a", 4.0, "admitted", "running"),
    ("a2", 1, "a", 2.0, "admitted", "waiting"),
    ("a3", 0, "a", 8.0, "deferred", None),
    ("a4", 0, "a", 1.0, "admitted", "succeeded"),
    ("b1", 0, "b", 3.0, "admitted", "placed"),
)
"""Jobs of users called ada: id, lane, tenant, GPUs, state in admission, phase in placement."""
USED = (("1", 0, "a", "ada", 5), ("2", 1, "a", "ada", 6), ("3", 0, "a", "eve", 7))


async def insert(conn: asyncpg.Connection, table: str, row: Any) -> None:
    names = [field.name for field in fields(row)]
    places = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    into = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"  # noqa: S608
    await conn.execute(into, *astuple(row))


@pytest.fixture
async def filled(database: str) -> str:
    conn: asyncpg.Connection = await connect(database)
    await conn.execute("SET search_path TO berth")
    for job_id, lane, tenant, gpus, state, phase in JOBS:
        of: dict[str, Any] = {
            "job_id": job_id,
            "partition": lane,
            "tenant": tenant,
            "user_id": "ada",
        }
        await insert(conn, "job_admission", AdmissionRow(**of, gpus=gpus, state=state))
        if phase is not None:
            await insert(conn, "job_placement", PlacementRow(**of, phase=phase))
    for usage_id, lane, tenant, user, gpu_ms in USED:
        row = JobUsageRow(usage_id, lane, 0, tenant=tenant, user_id=user, gpu_ms=gpu_ms)
        await insert(conn, "job_usage", row)
    await conn.close()
    return database


async def use(database: str, tenant: str | None) -> dict[tuple[str, str], tuple[Any, ...]]:
    conn: asyncpg.Connection = await connect(database)
    await conn.execute("SET search_path TO berth")
    rows = await conn.fetch(USE, tenant)
    await conn.close()
    return {(row["tenant"], row["user"]): tuple(row[name] for name in FIGURES) for row in rows}


async def test_ended_jobs_are_not_open_and_users_of_one_name_are_two(filled: str) -> None:
    every = await use(filled, None)
    assert every == {
        ("a", "ada"): (3, 1, 4.0, 11),
        ("a", "eve"): (0, 0, 0.0, 7),
        ("b", "ada"): (1, 1, 3.0, 0),
    }
    assert await use(filled, "b") == {("b", "ada"): every["b", "ada"]}
