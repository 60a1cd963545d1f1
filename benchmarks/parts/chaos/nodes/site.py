"""The installation of a chaos run of nodes: a stack, nodes with an agent, and their load."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.parts.agents.node_pool import agent_port, agents_stack, prepare_pool
from benchmarks.parts.chaos.loaded_stack import running_load
from benchmarks.parts.chaos.nodes.node import RealNode
from benchmarks.parts.chaos.nodes.node_load import NodeLoad
from benchmarks.parts.stack import Bench, until_joined
from infra.drills.hosts import Network
from infra.drills.proxy import Proxy
from infra.supervisor.listening import API_PORT, Listen
from infra.supervisor.running import Broker
from shared.process.progress import ReportLine

CONTROL_HOST = "control"
GRACE_S = 1.0
"""Of the jobs: they are ended so long before the deadline."""


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """The size of the installation; `terms` are settings of the pool."""

    broker: Broker
    nodes: int
    per_s: float
    most_open: int
    long_s: float
    terms: dict[str, Any]
    gpus: int = 2
    """Of each node."""
    is_uniform: bool = False
    """Whether all jobs have one worker with one GPU, and are long."""
    network: Network | None = None
    """Hosts of the nodes and, as this process's own, of the control plane; None: one host, where
    each node reaches its executor through a proxy."""


@dataclass(frozen=True, slots=True)
class ChaosSite:
    """A running installation."""

    load: NodeLoad
    nodes: tuple[RealNode, ...]
    token: str
    """With which further nodes join."""
    faulty: set[str] = field(default_factory=set)
    """Nodes with a fault of their own at present."""

    @property
    def data_dir(self) -> Path:
        return self.load.bench.stack.data_dir

    def are_renewed_since(self, at_boot_ms: int) -> bool:
        """Return whether every node without a fault of its own was heard after this time."""
        sound = [node for node in self.nodes if node.node_id not in self.faulty]
        return all(node.is_renewed_since(at_boot_ms) for node in sound)


def quick_terms(stop_after_s: float) -> dict[str, Any]:
    """Return the settings of a pool whose nodes notice an outage soon."""
    return {
        "stop_after_s": stop_after_s,
        "heartbeat_s": 0.5,
        "request_timeout_s": 2.0,
        "reconnect_s": 0.5,
        "suspect_after_s": 3.0,
        "kill_s": 5.0,
        "clock_rate_bound": 1.0,
        "slack_s": 1.0,
    }


def harmless_s(terms: dict[str, Any]) -> float:
    """Return the length below which an outage stops no worker."""
    unseen_s = 2 * (terms["heartbeat_s"] + terms["request_timeout_s"]) + terms["reconnect_s"]
    return float(terms["stop_after_s"] - unseen_s - GRACE_S)


def host_names(nodes: int) -> list[str]:
    """Return the names of the hosts of so many nodes, that of the control plane first."""
    return [CONTROL_HOST, *(f"node-{number}" for number in range(1, nodes + 1))]


def listen_of(network: Network | None) -> Listen | None:
    """Return where the control plane listens; None without a network."""
    return None if network is None else Listen(network.hosts[CONTROL_HOST].address, API_PORT)


def make_node(options: SiteOptions, bench: Bench, number: int) -> RealNode:
    """Return a node that has not joined: on its host, or behind a proxy."""
    name, data_dir = f"node-{number}", bench.stack.data_dir
    node = RealNode(f"chaos-{os.getpid()}-{number}", data_dir / name, None, options.gpus)
    if options.network is None:
        node.proxy = Proxy(agent_port(bench))
    else:
        node.host, node.ca = options.network.hosts[name], bench.stack.ca
    return node


@asynccontextmanager
async def running_site(options: SiteOptions, report_line: ReportLine) -> AsyncIterator[ChaosSite]:
    """Run everything until the block ends, and remove it."""
    async with AsyncExitStack() as open_:
        listen = listen_of(options.network)
        bench = await open_.enter_async_context(agents_stack(options.broker, report_line, listen))
        token, lane = await prepare_pool(bench, **options.terms)
        nodes = []
        for number in range(1, options.nodes + 1):
            node = make_node(options, bench, number)
            open_.push_async_callback(node.remove)
            await node.join(bench.stack.gateway, token)
            node.start()
            nodes.append(node)
        await until_joined(bench, options.nodes, lane)
        ticks = bench.stack.data_dir / "ticks"
        ticks.mkdir()
        load = NodeLoad(bench, options.per_s, report_line, most_open=options.most_open)
        load.lane, load.folder, load.long_s = lane, str(ticks), options.long_s
        load.is_uniform = options.is_uniform
        await open_.enter_async_context(running_load(load, [lane]))
        yield ChaosSite(load, tuple(nodes), token)
