"""The cluster of each engine beside the stack, the service of its executor, and its settings.

All have three nodes with four GPUs each, which are declared: no program uses one.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.agents.node_pool import POOL, prepare_pool
from benchmarks.parts.agents.real_agent import running_agent
from benchmarks.parts.stack import TENANT, Bench, as_record
from infra.supervisor.stack import (
    AGENT_EXECUTOR,
    BY_NAME,
    KUBERNETES_EXECUTOR,
    SERVICES,
    SLURM_EXECUTOR,
    Service,
)
from shared.bus.logs.tail import LedgerTail
from shared.contracts.access import RegisterTenant
from shared.contracts.pools import ConfigurePool, PoolConfigured
from shared.ledger.partition import TP
from tests import kubernetes_cluster, slurm_cluster

NODES, GPUS = ("g1", "g2", "g3"), 4
VIRTUAL_EXECUTOR = "executor-virtual"
CONFIGURED_S = 60.0
SLURM_USER = "daemon"
POLL_S = "0.2"


@dataclass(frozen=True, slots=True)
class EngineSite:
    """An engine that runs: the service of its executor, and the settings of that one."""

    engine: str
    executor: Service
    env: Mapping[str, str]
    pool: str = POOL

    @property
    def runs_programs(self) -> bool:
        return self.engine != "virtual"

    @property
    def services(self) -> tuple[Service, ...]:
        """The services of a stack for it: no other executor has an inventory."""
        others = (s for s in SERVICES if not s.inventory and s.name != self.executor.name)
        return (*others, self.executor)

    @asynccontextmanager
    async def nodes(self, bench: Bench) -> AsyncIterator[int]:
        """Configure the pool, run the agents where it has some; yield its lane."""
        if self.engine != "agent":
            yield await configure(bench, self.engine)
            return
        token, lane = await prepare_pool(bench)
        async with AsyncExitStack() as agents:
            for node in NODES:
                await agents.enter_async_context(running_agent(bench, token, node, GPUS))
            yield lane


def missing(engine: str) -> str:
    """Return why an engine is not on this machine, empty if it is."""
    if engine == "slurm":
        return slurm_cluster.missing()
    return kubernetes_cluster.missing() if engine == "kubernetes" else ""


@contextmanager
def running_site(engine: str) -> Iterator[EngineSite]:
    """Run the cluster of an engine until the block ends, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="be", dir="/tmp") as name:
        folder = Path(name)
        if engine == "virtual":
            yield EngineSite(engine, BY_NAME[VIRTUAL_EXECUTOR], _virtual(folder))
        elif engine == "agent":
            yield EngineSite(engine, BY_NAME[AGENT_EXECUTOR], {})
        elif engine == "slurm":
            with slurm_cluster.slurm_cluster(folder) as slurm:
                yield EngineSite(engine, SLURM_EXECUTOR, _slurm(slurm))
        else:
            with kubernetes_cluster.kubernetes_cluster(folder) as kubernetes:
                yield EngineSite(engine, KUBERNETES_EXECUTOR, _kubernetes(kubernetes))


def _virtual(folder: Path) -> dict[str, str]:
    shape = {"gpu_type": "bench", "gpus": GPUS, "cpus": 8, "mem_gib": 16, "rack": "r1"}
    nodes = [{"id": node, "count": 1, **shape} for node in NODES]
    path = folder / "nodes.json"
    path.write_text(json.dumps([{"pool": POOL, "backend": "virtual", "nodes": nodes}]))
    return {"BERTH_NODES": str(path)}


def _slurm(cluster: slurm_cluster.SlurmCluster) -> dict[str, str]:
    return {
        "SLURM_CONF": cluster.environment["SLURM_CONF"],
        "BERTH_SLURM_POOL": POOL,
        "BERTH_SLURM_FOLDER": str(cluster.shared),
        "BERTH_SLURM_PARTITION": "main",
        "BERTH_SLURM_USER": SLURM_USER if os.geteuid() == 0 else "",
        "BERTH_SLURM_POLL_S": POLL_S,
    }


def _kubernetes(cluster: kubernetes_cluster.KubernetesCluster) -> dict[str, str]:
    manifests = kubernetes_cluster.MANIFESTS
    for name in ("executor", "admission", "tenant"):
        text = (manifests / f"{name}.yaml").read_text()
        cluster.apply(text.replace("berth-vision", f"berth-{TENANT}"))
    return {
        "BERTH_KUBERNETES_POOL": POOL,
        "BERTH_KUBERNETES_CONFIG": str(cluster.kubeconfig(kubernetes_cluster.EXECUTOR)),
        "BERTH_KUBERNETES_IMAGE": kubernetes_cluster.IMAGE,
        "BERTH_KUBERNETES_NETWORK": "host",
        "BERTH_KUBERNETES_POLL_S": POLL_S,
    }


async def configure(bench: Bench, engine: str) -> int:
    """Make the pool of an engine, and its tenant; return the lane of the pool."""
    commands = (
        ConfigurePool.model_validate(
            {"pool": POOL, "base_policy": "fair_share", "backends": (engine,)}
        ),
        RegisterTenant(tenant=TENANT, default_pool=POOL),
    )
    log = bench.log()
    await log.start()
    try:
        for command in commands:
            await log.append(TP("access.commands", 0), as_record(command))
    finally:
        await log.stop()
    return await _lane(bench)


async def _lane(bench: Bench) -> int:
    tail = LedgerTail(bench.log(), {"access": [0]})
    await tail.start()
    try:
        async with asyncio.timeout(CONFIGURED_S):
            async for batch in tail:
                for fact in (fact for accepted in batch for fact in accepted.facts()):
                    if isinstance(fact.event, PoolConfigured):
                        return fact.event.partition
    finally:
        await tail.stop()
    raise RuntimeError("a tail does not end")
