"""A stack for agents alone: its services, one pool of nodes with an agent, and a join token."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.parts.stack import TENANT, Bench, configure, started
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.listening import Listen
from infra.supervisor.running import Broker
from infra.supervisor.stack import AGENT_EXECUTOR, SERVICES
from shared.contracts.access import RegisterTenant
from shared.contracts.enrolment import CreateNodeToken, NodeTokenCreated
from shared.contracts.keys import format_key, hash_secret
from shared.contracts.pools import ConfigurePool
from shared.contracts.topics import LANES
from shared.process.progress import ReportLine

POOL = "nodes"
TOKEN_ID = "bench"
TOKEN_S = 86_400


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
    lane = await configure(
        bench,
        ConfigurePool(pool=POOL, base_policy="fair_share", backends=("agent",), **settings),
        RegisterTenant(tenant=TENANT, default_pool=POOL),
        CreateNodeToken(
            token_id=TOKEN_ID, sha256=hash_secret(secret), pool=POOL, ttl_s=TOKEN_S, approve=True
        ),
        until=NodeTokenCreated,
    )
    return format_key(TOKEN_ID, secret), lane
