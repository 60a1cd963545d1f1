"""The two that place the same pods: the scheduler of Kubernetes, and the whole of Berth."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import yaml

from benchmarks.parts.kubernetes.fake_cluster import KUBE_SCHEDULER, SCHEDULER, TENANT, FakeCluster
from benchmarks.parts.stack import configure, started, until_joined
from infra.kubernetes.control_plane import ACCOUNT, EXECUTOR
from infra.machine.owned_folders import scratch_folder
from infra.machine.process import free_ports
from infra.supervisor import supervise
from infra.supervisor.running import Broker
from infra.supervisor.stack import AGENT_EXECUTOR, KUBERNETES_EXECUTOR, KUBERNETES_POOL, SERVICES
from shared.contracts.access import RegisterTenant
from shared.contracts.pools import ConfigurePool
from shared.contracts.topics import LANES
from shared.process.progress import ReportLine

POOL = "cloud"
JOIN_S = 300.0
CpuOf = Callable[[], dict[str, float]]
SCHEDULING = tuple(s for s in SERVICES if not s.inventory and s.name != AGENT_EXECUTOR)
"""Services of the stack: it has neither virtual nodes nor agents."""


@dataclass(frozen=True, slots=True)
class System:
    """A scheduler that runs; `cpu_s` returns the CPU seconds of its processes so far."""

    name: str
    scheduler: str
    """`schedulerName` of pods that it places."""
    user: str
    """The user of its requests."""
    cpu_s: CpuOf


@asynccontextmanager
async def kube_scheduler(
    cluster: FakeCluster, name: str, requests_per_s: float
) -> AsyncIterator[System]:
    """Run kube-scheduler; it limits its own requests per second, to 50 as it is delivered."""
    [port] = free_ports(1)
    client: dict[str, object] = {"kubeconfig": str(cluster.kubeconfig(SCHEDULER))}
    if requests_per_s:
        client |= {"qps": requests_per_s, "burst": round(2 * requests_per_s)}
    path = cluster.folder / "scheduler.yaml"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": client,
        "leaderElection": {"leaderElect": False},
    }
    path.write_text(yaml.safe_dump(config))
    cluster.spawn(
        "scheduler",
        str(cluster.programs / "scheduler"),
        f"--config={path}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={cluster.folder}/certs-scheduler",
        "--authentication-skip-lookup=true",
    )
    cpu_s = partial(cluster.cpu_s, ("scheduler",))
    yield System(name, "default-scheduler", KUBE_SCHEDULER, cpu_s)


@asynccontextmanager
async def berth(
    cluster: FakeCluster, name: str, broker: Broker, nodes: int, report_line: ReportLine
) -> AsyncIterator[System]:
    """Run the services of `berth up` with an executor of this cluster, on an empty log."""
    settings = {
        KUBERNETES_POOL: POOL,
        "BERTH_KUBERNETES_CONFIG": str(cluster.kubeconfig(EXECUTOR)),
        "BERTH_KUBERNETES_PODS": "true",
    }
    with scratch_folder("bench") as folder:
        options = supervise.StackOptions(
            data_dir=folder,
            broker=broker,
            partitions=LANES,
            awaited=tuple(service.name for service in SCHEDULING),
            services=(*SCHEDULING, KUBERNETES_EXECUTOR),
            env={KUBERNETES_EXECUTOR.name: settings},
        )
        async with started(options, report_line) as bench:
            lane = await configure(
                bench,
                ConfigurePool(pool=POOL, backends=("kubernetes",)),
                RegisterTenant(tenant=TENANT, default_pool=POOL),
            )
            report_line(f"{nodes} nodes join")
            await until_joined(bench, nodes, lane, JOIN_S)
            yield System(name, "berth", ACCOUNT, bench.cpu_s)
