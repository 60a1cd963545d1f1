"""Plays the day through a running stack: its own Kafka, services and virtual nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.parts.live.day import Day, pool_of
from benchmarks.parts.live.ledger import LiveDay
from benchmarks.parts.stack import Bench, started, until_joined
from cli.replay.feeder import Feeder
from cli.replay.submission import of_workload
from cli.replay.workload import timed
from cli.stack.bring_up import VIRTUAL, open_up, with_nodes
from cli.stack.machine import local_node
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.running import Broker
from infra.supervisor.stack import AGENT, SERVICES
from shared.bus.logs.tail import LedgerTail
from shared.contracts.pools import ConfigurePool
from shared.process.progress import ReportLine
from simulator.engine.sizing import PLENTY_CPUS, PLENTY_MEM_GIB
from simulator.workload.rows import NODE_GPUS

POOL, LOCAL_POOL = "day", "local"
LANE = 0
"""Of the first pool that a stack is given."""
READY_S = 90.0
SHOWN_EVERY_S = 15.0
PATIENCE, GRACE_S = 3.0, 120.0
"""A day that takes longer than planned by this factor, plus the grace, has failed."""


@asynccontextmanager
async def day_stack(
    day: Day, local: ConfigurePool, tenants: list[str], broker: Broker, report_line: ReportLine
) -> AsyncIterator[Bench]:
    """Run a whole stack: the pool of the day, and this machine as the node of another pool."""
    with scratch_folder("bench") as folder:
        node = local_node(local.pool)
        options = with_nodes(
            supervise.StackOptions(data_dir=folder, broker=broker), {VIRTUAL: inventory(day)}, node
        )
        async with started(options, report_line) as bench:
            pools = [pool_of(day, POOL), local]
            await asyncio.to_thread(open_up, bench.stack, pools, tenants, node)
            names = (*(service.name for service in SERVICES), AGENT)
            await asyncio.to_thread(supervise.wait_ready, folder, names, READY_S)
            await until_joined(bench, day.nodes, LANE)
            yield bench


def inventory(day: Day) -> dict[str, object]:
    """Return the virtual nodes, on which nothing but GPUs is scarce."""
    return {
        "pool": POOL,
        "backend": "virtual",
        "nodes": [
            {
                "id": f"day-{{0..{day.nodes - 1}}}",
                "count": day.nodes,
                "gpu_type": "gpu",
                "gpus": NODE_GPUS,
                "cpus": PLENTY_CPUS,
                "mem_gib": PLENTY_MEM_GIB,
            }
        ],
    }


async def play(bench: Bench, day: Day, planned_s: float, report_line: ReportLine) -> LiveDay:
    """Submit the day through the tenants' topics and follow it in the ledgers until all ended.

    Raises ValueError if jobs have not ended after several times the planned cluster seconds.
    """
    partitions = bench.stack.partitions
    due = timed(
        day.jobs,
        day.time_scale,
        lambda job: of_workload(job, POOL, "day", day.costs.checkpoint_s, day.costs.restart_s),
    )
    tail = LedgerTail(bench.log(), {"admission": [LANE], "placement": [LANE]})
    await tail.start()
    feeder = Feeder(bench.stack.connection("operator"), partitions)
    live = LiveDay(day, [item.submission.job_id for item in due], int(time.time() * 1000))
    feeding = asyncio.ensure_future(feeder.run(due))
    try:
        async with asyncio.timeout(planned_s / day.time_scale * PATIENCE + GRACE_S):
            await follow(live, tail, feeding, len(due), report_line)
    except TimeoutError:
        raise ValueError(f"{len(due) - live.over} of {len(due)} jobs did not end in time") from None
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        await tail.stop()
    return live


async def follow(
    live: LiveDay,
    tail: LedgerTail,
    feeding: asyncio.Future[None],
    jobs: int,
    report_line: ReportLine,
) -> None:
    """Read until every job has ended; what ends the submission early is raised."""
    shown_s = time.monotonic()
    while live.over < jobs:
        for accepted in await tail.poll(0.5):
            for fact in accepted.facts():
                live.see(fact)
        if feeding.done():
            feeding.result()
        if time.monotonic() - shown_s > SHOWN_EVERY_S:
            shown_s = time.monotonic()
            report_line(f"{live.over} of {jobs} jobs ended")
