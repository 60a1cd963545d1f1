"""A simulation's ledgers, as `berth simulate --out` writes them, become rows like any others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.main import app
from services.gateway.reads import job_queries, queries
from shared.bus.logs.memory import MemoryLog
from shared.projections import cursor
from shared.projections.database import connect
from shared.projections.project import project
from shared.projections.source import Source
from simulator.engine.options import TIME_SCALE
from simulator.engine.recording import restore_broker
from simulator.engine.scenario import FIRST_MS, job_id
from simulator.engine.world import BEGIN

ALL_JOBS = (None, None, None, None, None, None, "", 1000)
"""Of every tenant, phase, name, pool and array, from the youngest on."""


async def rows(dsn: str, folder: Path, query: str, *given: object) -> list[dict[str, Any]]:
    """Return rows of the gateway's query after projecting all ledgers of that folder."""
    conn = await connect(dsn)
    source = Source(MemoryLog(restore_broker(folder)), 1, await cursor.read(conn))
    await source.start()
    try:
        while not source.caught_up:
            if batches := await source.poll(0.01, 1000):
                await project(conn, batches)
        return [dict(row) for row in await conn.fetch(query, *given)]
    finally:
        await source.stop()
        await conn.close()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The command as a user gives it: its folder, and its one JSON object."""
    folder = tmp_path_factory.mktemp("simulated")
    ran = CliRunner().invoke(
        app,
        [
            "simulate",
            "--jobs",
            "60",
            "--nodes",
            "2",
            "--load",
            "1.2",
            "--last-share",
            "1",
            "--policy",
            "srsf",
            "--preemption",
            "ranked",
            "--large-gang-share",
            "1",
            "--out",
            str(folder),
            "--verify",
            "--json",
        ],
    )
    assert ran.exit_code == 0, ran.output
    return folder, json.loads(ran.stdout)


async def test_the_read_models_of_a_simulation_agree_with_its_metrics(
    database: str, simulated: tuple[Path, dict[str, Any]]
) -> None:
    folder, report = simulated
    assert report["verify"] == "ok"
    listed = await rows(database, folder, job_queries.JOBS, *ALL_JOBS)
    assert len(listed) == report["jobs"] == 60
    ended = [row for row in listed if row["phase"] in ("succeeded", "failed")]
    rejected = [row for row in listed if row["phase"] == "rejected"]
    all_jobs = report["all"]
    assert len(rejected) == all_jobs["never_fit"]
    assert len(ended) + len(rejected) == all_jobs["jobs"] - all_jobs["unfinished"]
    assert sum(row["preemptions"] for row in listed) == report["preemptions"] > 0
    jct_s = [(row["ended_at"] - row["submitted_at"]) * TIME_SCALE / 1000 for row in ended]
    np.testing.assert_allclose(np.mean(jct_s), all_jobs["jct_s"]["mean"], atol=1e-3)
    first = min(listed, key=lambda row: row["job_id"])
    assert (first["job_id"], first["submitted_at"]) == (job_id(0), BEGIN + FIRST_MS)


async def test_the_hold_reasons_of_a_simulated_job_are_in_the_read_models(
    database: str, simulated: tuple[Path, dict[str, Any]]
) -> None:
    folder, _ = simulated
    longest = (
        "SELECT job_id FROM job ORDER BY placed_at - submitted_at DESC NULLS LAST, job_id LIMIT 1"
    )
    ((name,),) = [tuple(row.values()) for row in await rows(database, folder, longest)]
    events = await rows(database, folder, queries.WHY, None, [name])
    assert "job.held.v1" in {row["type"] for row in events}
    assert all(row["until"] is None or row["until"] >= row["at"] for row in events)
    line = [row["type"] for row in await rows(database, folder, queries.TIMELINE, None, [name])]
    last_placed = len(line) - 1 - line[::-1].index("job.placed.v1")
    assert line.index("job.admitted.v1") < line.index("job.held.v1") < last_placed
