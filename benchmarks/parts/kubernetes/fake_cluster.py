"""A control plane with nodes that are objects alone: kwok plays their kubelets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from infra.kubernetes import build
from infra.kubernetes.control_plane import ADMIN, MANIFESTS, ControlPlane
from infra.machine.owned_folders import scratch_folder
from infra.machine.process import free_ports
from services.executor.engines.kubernetes.access import access_of
from services.executor.engines.kubernetes.api import KubernetesApi
from services.executor.engines.kubernetes.together import together

HERE = Path(__file__).parent
SCHEDULER = "scheduler-token"
KUBE_SCHEDULER = "system:kube-scheduler"
TENANT = "bench"
NAMESPACE = f"berth-{TENANT}"
CPUS, MEMORY, PODS = "128", "1Ti", "110"
DAEMONS = ("etcd", "apiserver")


@asynccontextmanager
async def fake_cluster(nodes: int, gpus: int) -> AsyncIterator[FakeCluster]:
    """Run a cluster of such nodes in a folder of its own, and Berth's rights and policies in it."""
    with scratch_folder("kubernetes") as folder:
        cluster = FakeCluster(folder)
        try:
            cluster.start()
            async with cluster.client(ADMIN) as api:
                await together(api.create("/api/v1/nodes", node(n, gpus)) for n in range(nodes))
            cluster.start_kubelets()
            yield cluster
        finally:
            cluster.stop()


class FakeCluster(ControlPlane):
    """The requests of both schedulers are in the file `audit`."""

    def __init__(self, folder: Path) -> None:
        self.audit = folder / "audit.log"
        super().__init__(
            folder,
            {SCHEDULER: f"{KUBE_SCHEDULER},u4"},
            (
                f"--audit-policy-file={HERE / 'audit.yaml'}",
                f"--audit-log-path={self.audit}",
                "--audit-log-mode=blocking",
            ),
        )

    def start(self) -> None:
        self.prepare()
        self.start_control_plane()
        for name in ("executor", "admission", "tenant", "pods"):
            text = (MANIFESTS / f"{name}.yaml").read_text()
            self.apply(text.replace("berth-vision", NAMESPACE))

    def start_kubelets(self) -> None:
        [port] = free_ports(1)
        self.spawn(
            "kwok",
            str(self.programs / build.KWOK),
            f"--kubeconfig={self.kubeconfig(ADMIN)}",
            f"--config={HERE / 'kwok.yaml'}",
            "--manage-all-nodes=true",
            # Nothing here looks at leases of nodes.
            "--node-lease-duration-seconds=0",
            "--node-ip=127.0.0.1",
            f"--node-port={port}",
            f"--server-address=127.0.0.1:{port}",
        )

    @asynccontextmanager
    async def client(self, token: str) -> AsyncIterator[KubernetesApi]:
        api = KubernetesApi(access_of(self.kubeconfig(token)))
        try:
            yield api
        finally:
            await api.close()

    def cpu_s(self, names: Iterable[str] = DAEMONS) -> dict[str, float]:
        """Return the CPU seconds of daemons so far."""
        return {name: _cpu_s(self.pid(name)) for name in names}


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def node(number: int, gpus: int) -> dict[str, Any]:
    """Return a node that is ready, with so many GPUs."""
    name = f"n{number:04d}"
    amounts = {"cpu": CPUS, "memory": MEMORY, "pods": PODS, "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "nodeInfo": {"bootID": name},
        },
    }
