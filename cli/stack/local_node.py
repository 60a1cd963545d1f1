"""The machine of a stack becomes its node: access knows it, then its agent starts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cli.errors import Refused
from cli.stack.access_producer import send_to_access
from infra.supervisor import local_node
from infra.supervisor.local_node import LocalNode
from infra.supervisor.running import RunningStack
from shared.bus.archive.opening import with_archive
from shared.bus.hosting.access import read_access
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Log
from shared.contracts.base import Command
from shared.contracts.enrolment import EnrollNode, RevokeNode
from shared.contracts.pools import ConfigurePool, PoolConfigured
from shared.process.connection import Connection

OF_AGENTS = frozenset(
    {
        "stop_after_s",
        "heartbeat_s",
        "request_timeout_s",
        "reconnect_s",
        "suspect_after_s",
        "kill_s",
        "clock_rate_bound",
        "slack_s",
    }
)
"""Settings that had no meaning in a pool without agents."""


def admit(stack: RunningStack, commands: Sequence[Command], node: LocalNode | None) -> None:
    """Send the commands to access, with those that make this machine a node; start its agent.

    A node that has its identity from an earlier start needs nothing of access.
    """
    connection = stack.connection("operator")
    if node is None:
        send(connection, commands, stack.archive)
        return
    if local_node.has_identity(stack):
        send(connection, commands, stack.archive)
    else:
        # A stack that has begun already may have its pool from a release without agents.
        access = with_archive(KafkaLog(connection), stack.archive)
        pool = [] if commands else asyncio.run(pool_of_agents(access, node.pool))
        enroll(stack, connection, [*commands, *pool], node)
    local_node.start_agent(stack)


def enroll(
    stack: RunningStack, connection: Connection, commands: Sequence[Command], node: LocalNode
) -> None:
    """Give this machine a new identity; one that access still knows of it is revoked."""
    identity, token, enrolment = local_node.new_identity(stack, node.pool)
    try:
        send(connection, [*commands, token, enrolment], stack.archive)
    except Refused as refused:
        if not str(refused).startswith(f"{EnrollNode.TYPE}: node_exists"):
            raise
        revocation = RevokeNode(node_id=identity.node_id, reason="its data folder is new")
        send(connection, [revocation, enrolment], stack.archive)
    local_node.store_identity(stack, identity)


def send(connection: Connection, commands: Sequence[Command], archive: str) -> None:
    if commands:
        asyncio.run(send_to_access(connection, commands, archive))


async def pool_of_agents(log: Log, name: str) -> list[ConfigurePool]:
    """Return the command that lets agents into the pool, which may exist; none if they are."""
    view = await read_access(log)
    return move_to_agents(name, view.pools.get(name))


def move_to_agents(name: str, pool: PoolConfigured | None) -> list[ConfigurePool]:
    """Return the command that makes a pool one of agents, with its other settings as they are."""
    if pool is None:
        return [ConfigurePool(pool=name, backends=("agent",))]
    if "agent" in pool.backends:
        return []
    settings = pool.model_dump(include=ConfigurePool.model_fields.keys() - OF_AGENTS)
    kept = tuple(backend for backend in pool.backends if backend != "process")
    return [ConfigurePool.model_validate({**settings, "backends": (*kept, "agent")})]
