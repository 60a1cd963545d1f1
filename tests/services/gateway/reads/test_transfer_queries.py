"""The GPUs that a pool has given to users are counted as admission counts them."""

from __future__ import annotations

from typing import Any

import asyncpg

from services.gateway.reads.transfer_queries import GPUS_OF_USERS
from shared.projections.database import connect
from shared.projections.jobs import AdmissionRow, PlacementRow
from tests.services.gateway.reads.test_user_queries import insert

JOBS = (
    ("a1", 0, "a", "ada", 4.0, "running"),
    ("a2", 0, "a", "ada", 2.0, "waiting"),
    ("a3", 0, "a", "ada", 8.0, None),
    ("a4", 0, "a", "ada", 1.0, "failed"),
    ("a5", 1, "a", "ada", 16.0, "running"),
    ("e1", 0, "a", "eve", 3.0, "stopping"),
    ("b1", 0, "b", "ada", 32.0, "running"),
)
"""Id, lane, tenant, user, GPUs, and phase in placement: None is deferred."""


async def test_the_gpus_of_a_user_are_those_of_its_admitted_jobs_by_pool(database: str) -> None:
    conn: asyncpg.Connection = await connect(database)
    await conn.execute("SET search_path TO berth")
    for job_id, lane, tenant, user, gpus, phase in JOBS:
        of: dict[str, Any] = {
            "job_id": job_id,
            "partition": lane,
            "tenant": tenant,
            "user_id": user,
        }
        state = "admitted" if phase else "deferred"
        await insert(conn, "job_admission", AdmissionRow(**of, gpus=gpus, state=state))
        if phase is not None:
            await insert(conn, "job_placement", PlacementRow(**of, phase=phase))
    rows = await conn.fetch(GPUS_OF_USERS, [0], ["a"])
    await conn.close()
    assert {(row["partition"], row["user"]): row["gpus"] for row in rows} == {
        (0, "ada"): 6.0,
        (0, "eve"): 3.0,
    }
