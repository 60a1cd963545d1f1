"""A pool of an earlier release becomes one of agents."""

from __future__ import annotations

import pytest

from cli.stack.local_node import move_to_agents, pool_of_agents
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.pools import ConfigurePool, PoolConfigured, default_of


def a_pool(*backends: str, **settings: object) -> PoolConfigured:
    fields = {"partition": 1, "pool": "local", "backends": backends, **settings}
    return PoolConfigured.model_validate(fields)


def test_a_pool_of_processes_keeps_its_settings() -> None:
    [command] = move_to_agents("local", a_pool("process", base_policy="fcfs", stop_after_s=7))
    assert (command.backends, command.base_policy) == (("agent",), "fcfs")
    assert command.stop_after_s == default_of("stop_after_s")


def test_other_backends_stay() -> None:
    [command] = move_to_agents("local", a_pool("virtual", "process"))
    assert command.backends == ("virtual", "agent")


def test_a_missing_pool_is_made() -> None:
    assert move_to_agents("local", None) == [ConfigurePool(pool="local", backends=("agent",))]


@pytest.mark.parametrize("backends", [("agent",), ("virtual", "agent")])
def test_a_pool_of_agents_stays_as_it_is(backends: tuple[str, ...]) -> None:
    assert move_to_agents("local", a_pool(*backends)) == []


async def test_the_pool_is_read_as_the_ledger_has_it_last() -> None:
    broker = MemoryBroker()
    access = LedgerWriter(broker, "access")
    access.write([a_pool("process", lease_s=9)])
    [command] = await pool_of_agents(MemoryLog(broker), "local")
    assert (command.backends, command.lease_s) == (("agent",), 9)
    access.write([a_pool("agent")])
    assert await pool_of_agents(MemoryLog(broker), "local") == []
