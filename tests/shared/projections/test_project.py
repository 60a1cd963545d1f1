"""Rows are a fold of ledgers: the same however the records were batched, and exactly once."""

from __future__ import annotations

import random

import asyncpg
import pytest

from shared.bus.memory import MemoryBroker, MemoryLog
from shared.contracts.access import PoolConfigured, TenantRegistered
from shared.contracts.jobs import (
    CommandAccepted,
    Gang,
    JobAdmitted,
    JobDeferred,
    JobRejected,
    JobSpec,
)
from shared.contracts.nodes import NodeCordoned, NodeHealthNoted, NodeJoined
from shared.contracts.placement import (
    Allocation,
    AllocationReleased,
    JobAttemptFailed,
    JobEnqueued,
    JobHeld,
    JobMigrated,
    JobPlaced,
    JobRequeued,
    JobResized,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.rejected import InputRejected
from shared.projections import cursor
from shared.projections.cursor import CursorMoved
from shared.projections.database import SCHEMA, connect
from shared.projections.migrate import migrate
from shared.projections.models import TABLES
from shared.projections.project import project
from shared.projections.rebuild import BESIDE, hashes, rebuild
from shared.projections.source import Source
from shared.projections.table import check
from shared.testing.ledgers import LedgerPen

SPEC = JobSpec(name="train", gang=Gang(gpus_per_worker=2), command=("run",), env={"A": "1"})


def history(jobs: int = 30, seed: int = 1) -> MemoryBroker:
    """One pool with a node; every third job waits, every tenth is rejected."""
    broker = MemoryBroker()
    pens = {name: LedgerPen(broker, name) for name in ("access", "admission", "priority")}
    placement = LedgerPen(broker, "placement")
    pens["access"].write([PoolConfigured(pool="p", partition=0)])
    pens["access"].write([TenantRegistered(tenant="red", default_pool="p", weight=2)])
    placement.write(
        [
            NodeJoined(
                node_id="n1",
                incarnation="i",
                executor_id="e",
                backend="virtual",
                gpu_type="a100",
                gpus=8,
                cpus=8,
                mem_gib=64,
            )
        ]
    )
    for number in range(jobs):
        run_job(pens["admission"], pens["priority"], placement, number)
        if number % 7 == 0:
            pens["admission"].scribble(b"not a record")
    placement.write([NodeCordoned(node_id="n1", reason="hot")])
    pens["admission"].write(
        [InputRejected(topic="commands", partition=0, offset=4, reason="no JSON", sha256="ab")]
    )
    return broker


def run_job(admission: LedgerPen, priority: LedgerPen, placement: LedgerPen, number: int) -> None:
    job, tenant = f"j{number}", "red"
    if number % 10 == 9:
        admission.write([JobRejected(job_id=job, tenant=tenant, name="train", reason="infeasible")])
        return
    if number % 3 == 0:
        admission.write([JobDeferred(job_id=job, tenant=tenant, reason="quota", spec=SPEC)])
    admission.write(
        [
            CommandAccepted(command_id=f"c{number}", command_type="job.submit.v1", of=job),
            JobAdmitted(job_id=job, tenant=tenant, submitted_at=admission.at, spec=SPEC),
        ]
    )
    priority.write([QueueRanked(base_policy="fcfs", ranked=(Ranked(job_id=job, score=1),))])
    placement.write([JobEnqueued(job_id=job, tenant=tenant, submitted_at=1, spec=SPEC)])
    if number % 3 == 1:
        placement.write([JobHeld(job_id=job, tenant=tenant, reason="no_capacity", short_gpus=2)])
    if number % 5 == 4:
        return
    lease = Allocation(rank=0, node_id="n1", gpus=(0, 1), cpus=1, mem_gib=1)
    place = placement.write(
        [
            JobPlaced(
                job_id=job,
                tenant=tenant,
                attempt=1,
                allocations=(lease,),
                waited_ms=1,
                policy="fcfs",
            )
        ]
    )
    placement.write([JobStarted(job_id=job, tenant=tenant, attempt=1, gpus=2)])
    placement.write(
        [
            AllocationReleased(
                job_id=job,
                tenant=tenant,
                attempt=1,
                allocation_id=f"{place}/0",
                node_id="n1",
                reason="exited",
                exit_code=0,
            ),
            JobSucceeded(job_id=job, tenant=tenant, attempt=1, ran_ms=40, gpu_s=0.0801 * number),
        ]
    )


async def project_all(dsn: str, broker: MemoryBroker, sizes: random.Random | None = None) -> None:
    await migrate(dsn)
    conn = await connect(dsn)
    source = Source(MemoryLog(broker), 2, await cursor.read(conn))
    await source.start()
    try:
        while not source.caught_up:
            most = sizes.randint(1, 9) if sizes else 1000
            batches = await source.poll(0.01, most)
            if batches:
                await project(conn, batches)
    finally:
        await source.stop()
        await conn.close()


async def test_row_classes_name_the_columns_of_their_tables(database: str) -> None:
    await migrate(database)
    conn = await connect(database)
    for table in TABLES:
        check(table)
        assert await table.load(conn, ["nobody"]) == {}
    await conn.close()


async def test_the_gpu_time_of_every_attempt_is_the_jobs_and_its_tenants(database: str) -> None:
    broker = MemoryBroker()
    pen, of_red = LedgerPen(broker, "placement"), {"job_id": "j1", "tenant": "red"}
    pen.write([JobEnqueued(**of_red, submitted_at=1, spec=SPEC)])
    pen.write([JobRequeued(**of_red, attempt=2, reason="higher_class", gpu_s=2.5)])
    pen.write([JobRequeued(**of_red, attempt=3, reason="start_failed")])
    pen.write([JobAttemptFailed(**of_red, attempt=3, reason="worker_failed", gpu_s=0.25)])
    pen.write([JobSucceeded(**of_red, attempt=4, ran_ms=40, gpu_s=0.0801)])
    await project_all(database, broker)
    conn = await connect(database)
    told = await conn.fetchrow(
        "SELECT j.gpu_ms AS job, u.gpu_ms AS tenant FROM berth.job_placement j"
        " JOIN berth.tenant_usage u USING (tenant)"
    )
    await conn.close()
    assert tuple(told or ()) == (2830, 2830)


async def test_any_batching_gives_the_same_rows(database: str) -> None:
    broker = history()
    await project_all(database, broker)
    conn = await connect(database)
    once = await hashes(conn, SCHEMA)
    for seed in range(3):
        await conn.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
        await project_all(database, broker, random.Random(seed))
        assert await hashes(conn, SCHEMA) == once
    await conn.close()


async def test_moves_are_counted_and_told_and_nodes_have_a_health(database: str) -> None:
    broker = history(1)
    pen = LedgerPen(broker, "placement", 1)
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
    told = await conn.fetch("SELECT type FROM why_waiting WHERE job_id = 'k' ORDER BY seq, idx")
    assert [each["type"] for each in told][1:] == ["job.migrated.v1", "job.resized.v1"]
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
    await migrate(database)
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


async def test_the_views_tell_a_job_from_both_ledgers(database: str) -> None:
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


async def test_a_rebuild_equals_the_live_rows_and_replaces_them(database: str) -> None:
    broker = history()
    await project_all(database, broker)
    seen: list[int] = []
    result = await rebuild(database, MemoryLog(broker), 2, swap=True, progress=seen.append)
    assert result.different == [] and result.swapped and result.events == sum(seen) > 100
    conn = await connect(database)
    assert await hashes(conn, SCHEMA) == result.live
    with pytest.raises(asyncpg.InvalidSchemaNameError):
        await conn.execute(f"DROP SCHEMA {BESIDE}")
    await conn.close()
    await project_all(database, broker)


async def test_a_rebuild_finds_a_row_that_somebody_changed(database: str) -> None:
    broker = history()
    await project_all(database, broker)
    conn = await connect(database)
    await conn.execute("UPDATE job_placement SET gpu_ms = gpu_ms + 1 WHERE job_id = 'j3'")
    result = await rebuild(database, MemoryLog(broker), 2, swap=False)
    assert result.different == ["job_placement"]
    await rebuild(database, MemoryLog(broker), 2, swap=True)
    again = await rebuild(database, MemoryLog(broker), 2, swap=False)
    assert again.different == []
    await conn.close()
