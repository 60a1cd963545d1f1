"""A stack for agents alone: its services, one pool of nodes with an agent, and a join token."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.parts.stack import TENANT, Bench, as_record, started
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.listening import Listen
from infra.supervisor.running import Broker
from infra.supervisor.stack import AGENT_EXECUTOR, SERVICES
from shared.bus.logs.tail import LedgerTail
from shared.contracts.access import RegisterTenant
from shared.contracts.enrolment import CreateNodeToken, NodeTokenCreated
from shared.contracts.keys import format_key, hash_secret
from shared.contracts.pools import ConfigurePool, PoolConfigured
from shared.contracts.topics import LANES
from shared.ledger.partition import TP
from shared.process.progress import ReportLine

POOL = "nodes"
TOKEN_ID = "bench"
TOKEN_S = 86_400
CONFIGURED_S = 60.0


def agent_port(bench: Bench) -> int:
    """Return the port that agents connect to."""
    return bench.stack.ports[AGENT_EXECUTOR]["http"]


@asynccontextmanager
async def agents_stack(
    broker: Broker, report_line: ReportLine, listen: Listen | None = None
) -> AsyncIterator[Bench]:
    """Run every service but the executors with an inventory on an empty log.

    With an address of the network they listen there, and speak TLS.
    """
    with scratch_folder("bench") as folder:
        services = tuple(service for service in SERVICES if not service.inventory)
        options = supervise.StackOptions(
            data_dir=folder,
            broker=broker,
            partitions=LANES,
            services=services,
            listen=listen,
            tls=listen is not None,
        )
        async with started(options, report_line) as bench:
            yield bench


async def prepare_pool(bench: Bench, **settings: Any) -> tuple[str, int]:
    """Configure the pool and the tenant; return a join token, and the lane of the pool."""
    secret = secrets.token_hex(32)
    commands = (
        ConfigurePool(pool=POOL, base_policy="fair_share", backends=("agent",), **settings),
        RegisterTenant(tenant=TENANT, default_pool=POOL),
        CreateNodeToken(
            token_id=TOKEN_ID, sha256=hash_secret(secret), pool=POOL, ttl_s=TOKEN_S, approve=True
        ),
    )
    log = bench.log()
    await log.start()
    try:
        for command in commands:
            await log.append(TP("access.commands", 0), as_record(command))
    finally:
        await log.stop()
    return format_key(TOKEN_ID, secret), await _lane_with_token(bench)


async def _lane_with_token(bench: Bench) -> int:
    """Return the lane of the pool once the token exists."""
    tail = LedgerTail(bench.log(), {"access": [0]})
    await tail.start()
    lane = 0
    try:
        async with asyncio.timeout(CONFIGURED_S):
            async for batch in tail:
                for fact in (fact for accepted in batch for fact in accepted.facts()):
                    if isinstance(fact.event, PoolConfigured):
                        lane = fact.event.partition
                    if isinstance(fact.event, NodeTokenCreated):
                        return lane
    finally:
        await tail.stop()
    raise RuntimeError("a tail does not end")
