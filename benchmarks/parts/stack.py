"""A stack for one measurement: the real services, an empty log, pools, nodes and a tenant."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from infra.machine.owned_folders import scratch_folder
from infra.supervisor import stack, supervise, usage
from infra.supervisor.running import Broker, RunningStack
from infra.supervisor.stack import SERVICES
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.tail import LedgerTail
from shared.contracts.access import RegisterTenant
from shared.contracts.base import Command, Event
from shared.contracts.codec import encode
from shared.contracts.pools import ConfigurePool, PoolConfigured
from shared.contracts.topics import LANES
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from shared.process.progress import ReportLine

POOL, TENANT = "virtual", "bench"
LANE = 0
AWAITED = tuple(s.name for s in SERVICES if not s.inventory)
"""An executor is ready only once its pool is configured."""


def as_record(command: Command, command_id: str = "", traceparent: str = "") -> bytes:
    """Return the command as the gateway would append it."""
    return cloudevents.encode(
        id=command_id or str(uuid4()),
        source="/berth/bench",
        type=command.TYPE,
        data=encode(command),
        at_ms=int(time.time() * 1000),
        traceparent=traceparent,
    )


@dataclass(frozen=True, slots=True)
class Bench:
    """A running stack with a pool, its nodes and a tenant."""

    stack: RunningStack

    def log(self, client: str = "bench") -> KafkaLog:
        return KafkaLog(self.stack.connection("operator"), client=client)

    def cpu_s(self) -> dict[str, float]:
        """Return CPU seconds used so far by each process of the stack, children included."""
        return usage.cpu_s(self.stack.data_dir)

    def pss_mib(self) -> dict[str, float]:
        """Return the proportional memory of each process: shared pages count once."""
        memory = usage.memory(self.stack.data_dir)
        return {name: round(process.pss_mib, 1) for name, process in memory.items()}


@asynccontextmanager
async def bench_stack(
    broker: Broker,
    report_line: ReportLine,
    *,
    partitions: int = LANES,
    pools: int = 1,
    copies: int = 1,
) -> AsyncIterator[Bench]:
    """Run the services of `make demo` on an empty log, and delete it afterwards.

    Pool n is lane n, each with the virtual nodes of the demo.
    """
    with scratch_folder("bench") as folder:
        options = supervise.StackOptions(
            data_dir=folder,
            broker=broker,
            partitions=partitions,
            awaited=AWAITED,
            services=stack.copies(copies),
            env={"executor-virtual": inventory(folder, pools)},
        )
        async with started(options, report_line) as bench:
            await prepare(bench, report_line, pools)
            yield bench


@asynccontextmanager
async def started(options: supervise.StackOptions, report_line: ReportLine) -> AsyncIterator[Bench]:
    """Start a stack and stop it afterwards.

    A cancellation during the start waits for its thread, which cannot be cancelled.
    """
    starting = asyncio.ensure_future(asyncio.to_thread(supervise.up, options, report_line))
    try:
        yield Bench(await asyncio.shield(starting))
    finally:
        await asyncio.wait([starting])
        await asyncio.to_thread(supervise.down, options.data_dir)


def pool_of(lane: int) -> str:
    """Return the pool of a lane; `prepare` configures them in this order."""
    return POOL if lane == LANE else f"{POOL}-{lane}"


def inventory(folder: Path, pools: int) -> dict[str, str]:
    """Write the demo's nodes for every pool; return the executor's variable that names the file."""
    shape = json.loads((stack.NODES / "virtual.json").read_text())
    path = folder / "nodes.json"
    path.write_text(
        json.dumps(
            [
                {
                    **shape,
                    "pool": pool_of(lane),
                    "nodes": [group | {"id": f"p{lane}-{group['id']}"} for group in shape["nodes"]],
                }
                for lane in range(pools)
            ]
        )
    )
    return {"BERTH_NODES": str(path)}


async def prepare(
    bench: Bench, report_line: ReportLine, pools: int = 1, *, allow_injection: bool = False
) -> None:
    """Configure the pools and the tenant, and wait until the nodes have joined."""
    pools_in_order = (
        ConfigurePool(pool=pool_of(lane), base_policy="fair_share", allow_injection=allow_injection)
        for lane in range(pools)
    )
    await send(bench, *pools_in_order, RegisterTenant(tenant=TENANT, default_pool=POOL))
    report_line("waiting for the nodes to join")
    for lane in range(pools):
        await until_joined(bench, nodes=32, lane=lane)


async def send(bench: Bench, *commands: Command) -> None:
    """Send commands to access, in their order."""
    log = bench.log()
    await log.start()
    try:
        for command in commands:
            await log.append(TP("access.commands", 0), as_record(command))
    finally:
        await log.stop()


async def configure(
    bench: Bench, *commands: Command, until: type[Event] = PoolConfigured, timeout_s: float = 60.0
) -> int:
    """Send commands that configure one pool; return its lane once an event of `until` is there."""
    await send(bench, *commands)
    tail = LedgerTail(bench.log(), {"access": [0]})
    await tail.start()
    lane = 0
    try:
        async with asyncio.timeout(timeout_s):
            async for batch in tail:
                for fact in (fact for accepted in batch for fact in accepted.facts()):
                    if isinstance(fact.event, PoolConfigured):
                        lane = fact.event.partition
                    if isinstance(fact.event, until):
                        return lane
    finally:
        await tail.stop()
    raise RuntimeError("a tail does not end")


async def until_joined(bench: Bench, nodes: int, lane: int = LANE, timeout_s: float = 60.0) -> None:
    tail = LedgerTail(bench.log(), {"placement": [lane]})
    await tail.start()
    joined: set[str] = set()
    try:
        async with asyncio.timeout(timeout_s):
            while len(joined) < nodes:
                for accepted in await tail.poll(0.5):
                    joined |= {r.subject for r in accepted.raw() if r.type == "node.joined.v1"}
    finally:
        await tail.stop()
