"""Output goes as its pool says, or with its job, and while Postgres is away nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.projector.leaving import Leaving
from services.projector.output import DAY_MS, REMOVAL_MS, Output, OutputRules
from services.projector.settings import ProjectorSettings
from shared.bus.clock import now_ms
from shared.job_logs.chunk import JobKey, Run, Worker, chunk_of
from shared.job_logs.log_store import JobLogStore
from shared.projections.database import connect
from tests.shared.projections.history import project_all
from tests.shared.projections.test_retention import archive, months

DAYS = 80.0


def settings(tmp_path: Path, postgres: str, **more: object) -> ProjectorSettings:
    given = {"postgres": postgres, "job_logs": str(tmp_path / "output"), **more}
    return ProjectorSettings(kafka="127.0.0.1:1", data=tmp_path, **given)


async def put(store: JobLogStore, job: JobKey, at_ms: int) -> None:
    runs = [Run(at_ms, 0, ["a"])]
    await store.put(job, chunk_of(Worker(1, 0), runs, is_last=True), runs)


async def test_rules_are_those_of_the_pools_and_defaults_of_older_events(
    database: str, tmp_path: Path
) -> None:
    output = Output(settings(tmp_path, database))
    conn = await connect(database)
    await project_all(database, months())
    await conn.execute("DELETE FROM pool")
    await conn.execute(
        "INSERT INTO pool (pool, partition, time_scale, settings) VALUES"
        """ ('old', 0, 1, '{"pool": "old"}'), ('new', 1, 1, '{"logs_kept_d": 2, "logs_mib": 3}')"""
    )
    await output.read_rules(conn)
    assert output.rules == {0: OutputRules(30.0, 256.0), 1: OutputRules(2.0, 3.0)}
    assert [output._most_bytes(lane) >> 20 for lane in (0, 1, 7)] == [256, 3, 256]
    await conn.close()


async def test_output_goes_after_the_days_of_its_pool(tmp_path: Path) -> None:
    output, now = Output(settings(tmp_path, "")), now_ms()
    short, long, unknown = (JobKey(lane, "ada", "j") for lane in (0, 1, 2))
    for job in (short, long, unknown):
        await put(output.store, job, now - 5 * DAY_MS)
    output.rules = {0: OutputRules(4.0), 1: OutputRules(6.0)}
    await output.remove_old(now)
    assert [bool(await output.store.chunks(job)) for job in (short, long, unknown)] == [
        False,
        True,
        True,
    ]
    await output.remove_old(now + REMOVAL_MS - 1)
    assert await output.store.chunks(long), "not looked at again yet"
    await output.remove_old(now + 2 * DAY_MS)
    assert not await output.store.chunks(long)


@pytest.mark.parametrize("records_d", [0, DAYS])
async def test_output_leaves_with_its_job(database: str, tmp_path: Path, records_d: float) -> None:
    archive(tmp_path)
    given = settings(tmp_path, database, archive=str(tmp_path / "archive"), records_d=records_d)
    output, conn = Output(given), await connect(database)
    await project_all(database, months())
    rows = await conn.fetch("SELECT partition, tenant, job_id FROM job_admission")
    jobs = {row["job_id"]: JobKey(*row) for row in rows}
    for job in jobs.values():
        await put(output.store, job, now_ms())
    await Leaving(given, output).leave()
    left = {row["job_id"] for row in await conn.fetch("SELECT job_id FROM job_admission")}
    assert left and (left < jobs.keys() or not records_d)
    for job_id, job in jobs.items():
        assert bool(await output.store.chunks(job)) == (job_id in left)
    await conn.close()
