"""A short history of one pool, and its projection."""

from __future__ import annotations

import random

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted, JobDeferred, JobRejected
from shared.contracts.attempts import AllocationReleased, JobStarted, JobSucceeded
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.nodes import NodeCordoned
from shared.contracts.placement import Allocation, JobEnqueued, JobHeld, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.rejected import InputRejected
from shared.projections import cursor
from shared.projections.database import connect
from shared.projections.project import project
from shared.projections.source import Source
from tests.shared.ledger_events import node_joined

SPEC = JobSpec(name="train", gang=Gang(gpus_per_worker=2), command=("run",), env={"A": "1"})


def history(jobs: int = 30) -> MemoryBroker:
    """Ledgers of one pool with one node: a third of the jobs is held, a tenth rejected."""
    broker = MemoryBroker()
    pens = {name: LedgerWriter(broker, name) for name in ("access", "admission", "priority")}
    placement = LedgerWriter(broker, "placement")
    pens["access"].write([PoolConfigured(pool="p", partition=0)])
    pens["access"].write([TenantRegistered(tenant="red", default_pool="p", weight=2)])
    placement.write([node_joined()])
    for number in range(jobs):
        run_job(pens["admission"], pens["priority"], placement, number)
        if number % 7 == 0:
            pens["admission"].scribble(b"not a record")
    placement.write([NodeCordoned(node_id="n1", reason="hot")])
    pens["admission"].write(
        [InputRejected(topic="commands", partition=0, offset=4, reason="no JSON", sha256="ab")]
    )
    return broker


def run_job(
    admission: LedgerWriter, priority: LedgerWriter, placement: LedgerWriter, number: int
) -> None:
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
