"""The cluster of each engine beside the stack, the service of its executor, and its settings.

All have three nodes with four GPUs each, which are declared: no program uses one.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.agents.node_pool import POOL, prepare_pool
from benchmarks.parts.agents.real_agent import running_agent
from benchmarks.parts.stack import TENANT, Bench, configure
from infra.kubernetes import cluster as kubernetes_cluster
from infra.kubernetes.control_plane import EXECUTOR, MANIFESTS
from infra.kubernetes.image import IMAGE
from infra.ray import cluster as ray_cluster
from infra.slurm import cluster as slurm_cluster
from infra.supervisor.stack import (
    AGENT_EXECUTOR,
    BY_NAME,
    KUBERNETES_EXECUTOR,
    RAY_EXECUTOR,
    SERVICES,
    SLURM_EXECUTOR,
    Service,
)
from shared.contracts.access import RegisterTenant
from shared.contracts.pools import ConfigurePool

NODES, GPUS = ("g1", "g2", "g3"), 4
VIRTUAL_EXECUTOR = "executor-virtual"
SLURM_USER = "daemon"
POLL_S = "0.2"
END_S, RAY_END_S = 90.0, 600.0
"""Limits for the end of all gangs of a part: one that has not ended then is lost. A worker of Ray
is a process that takes seconds of CPU time to start."""
RAY_PENDING_S = "120"


@dataclass(frozen=True, slots=True)
class EngineSite:
    """An engine that runs: the service of its executor, and the settings of that one."""

    engine: str
    executor: Service
    env: Mapping[str, str]
    pool: str = POOL

    @property
    def end_s(self) -> float:
        return RAY_END_S if self.engine == "ray" else END_S

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
            settings = {"pool": self.pool, "base_policy": "fair_share", "backends": (self.engine,)}
            yield await configure(
                bench,
                ConfigurePool.model_validate(settings),
                RegisterTenant(tenant=TENANT, default_pool=self.pool),
            )
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
    if engine == "ray":
        return ray_cluster.missing()
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
        elif engine == "ray":
            with ray_cluster.ray_cluster(folder, ray_cluster.python()) as ray:
                yield EngineSite(engine, RAY_EXECUTOR, _ray(ray))
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


def _ray(cluster: ray_cluster.RayCluster) -> dict[str, str]:
    return {
        "BERTH_RAY_POOL": POOL,
        "BERTH_RAY_FOLDER": str(cluster.shared),
        "BERTH_RAY_ADDRESS": cluster.address,
        "BERTH_RAY_POLL_S": POLL_S,
        "BERTH_RAY_PENDING_S": RAY_PENDING_S,
    }


def _kubernetes(cluster: kubernetes_cluster.KubernetesCluster) -> dict[str, str]:
    for name in ("executor", "admission", "tenant"):
        text = (MANIFESTS / f"{name}.yaml").read_text()
        cluster.apply(text.replace("berth-vision", f"berth-{TENANT}"))
    return {
        "BERTH_KUBERNETES_POOL": POOL,
        "BERTH_KUBERNETES_CONFIG": str(cluster.kubeconfig(EXECUTOR)),
        "BERTH_KUBERNETES_IMAGE": IMAGE,
        "BERTH_KUBERNETES_NETWORK": "host",
        "BERTH_KUBERNETES_POLL_S": POLL_S,
    }
