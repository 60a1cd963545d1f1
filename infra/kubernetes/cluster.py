"""A real Kubernetes on this machine: API server, etcd, controllers, and a kubelet for each of a few
nodes, with a containerd and a device plugin of its own.

Nothing is installed: where a program is missing, `missing` names it. The GPUs are names alone.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from infra.kubernetes import build
from infra.kubernetes.control_plane import ADMIN, ControlPlane
from infra.kubernetes.image import IMAGE, write_image
from infra.machine.process import START_S, free_ports

NODES = ("g1", "g2", "g3")
GPUS = 4
DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
"""The one path at which a kubelet listens to device plugins."""
TENANT = "tenant-token"
USERS = {TENANT: "mallory,u3"}
PROGRAMS = ("containerd", "ctr", "runc", "busybox", "unshare", "nsenter", "openssl")
CONTROLLERS = (
    "node-lifecycle-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "namespace-controller",
    "taint-eviction-controller",
    "resourcequota-controller",
    "daemonset-controller",
    "job-controller",
)
CONTAINERD = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs"]
[grpc]
  address = "{folder}/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{folder}/cni"
    bin_dir = "{folder}/cni"
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
address: 127.0.0.1
port: {port}
readOnlyPort: 0
healthzPort: 0
containerRuntimeEndpoint: unix://{folder}/c.sock
podLogsDir: {folder}/pods
evictionHard: {{}}
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
resolvConf: ""
nodeStatusUpdateFrequency: 1s
nodeLeaseDurationSeconds: 4
makeIPTablesUtilChains: false
registerWithTaints: []
"""
CNI = '{"cniVersion": "0.4.0", "name": "lo", "plugins": [{"type": "loopback"}]}'


def missing() -> str:
    """Return why no cluster can be started here, empty if one can."""
    if absent := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"{absent[0]} is missing: apt-get install containerd busybox-static"
    if os.geteuid() != 0:
        return "a kubelet is started by root alone"
    return build.missing()


class KubernetesCluster(ControlPlane):
    """The daemons; each can be killed and started again."""

    def __init__(self, folder: Path, patience_s: float = START_S) -> None:
        super().__init__(folder, USERS, patience_s=patience_s)
        self.controllers, *kubelets = free_ports(1 + len(NODES))
        self.kubelet_ports = dict(zip(NODES, kubelets, strict=True))

    def start(self) -> None:
        self.prepare()
        self.start_control_plane()
        self.spawn(
            "controllers",
            str(self.programs / "controllers"),
            f"--kubeconfig={self.kubeconfig(ADMIN)}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.controllers}",
            f"--cert-dir={self.folder}/certs-controllers",
            "--use-service-account-credentials=false",
            f"--service-account-private-key-file={self.folder}/sa.key",
            f"--controllers={','.join(CONTROLLERS)}",
            "--node-monitor-grace-period=6s",
            "--node-monitor-period=1s",
        )
        for node in NODES:
            self._start_runtime(node)
        for node in NODES:
            self.start_node(node)
        self.eventually(lambda: all(self.gpus(node) == GPUS for node in NODES), "nodes")
        self.eventually(lambda: all(self.is_ready(node) for node in NODES), "nodes")

    def _start_runtime(self, node: str) -> None:
        """Start the containerd of a node, in a mount namespace with its own device plugins."""
        folder = self.folder / node
        for name in ("cni", "plugins", "pods", "kubelet"):
            (folder / name).mkdir(parents=True)
        (folder / "cni" / "lo.conflist").write_text(CNI)
        (folder / "containerd.toml").write_text(CONTAINERD.format(folder=folder, image=IMAGE))
        DEVICE_PLUGINS.mkdir(parents=True, exist_ok=True)
        mount = f"mount --bind {folder}/plugins {DEVICE_PLUGINS}"
        run = f"{mount} && exec containerd --config {folder}/containerd.toml"
        self.spawn(f"{node}-runtime", "unshare", "--mount", "sh", "-c", run)
        archive = self.folder / "image.tar"
        if not archive.exists():
            write_image(archive)
        ctr = ["ctr", "--address", f"{folder}/c.sock", "--namespace", "k8s.io"]
        self.eventually(lambda: (folder / "c.sock").exists(), "containerd")
        self.eventually(
            lambda: self.run(*ctr, "images", "import", str(archive)).returncode == 0, "the image"
        )
        address = [
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "Hostname", "address": node},
        ]
        labels = {"kubernetes.io/hostname": node}
        self.request(
            "POST", "/api/v1/nodes", {"kind": "Node", "metadata": {"name": node, "labels": labels}}
        )
        self.patch(f"/api/v1/nodes/{node}/status", {"status": {"addresses": address}})
        config = KUBELET.format(folder=folder, port=self.kubelet_ports[node])
        (folder / "kubelet.yaml").write_text(config)

    def start_node(self, node: str) -> None:
        """Start the kubelet of a node, and its device plugin, which registers with it."""
        folder = self.folder / node
        self.spawn(
            node,
            "nsenter",
            "--target",
            str(self._processes[f"{node}-runtime"].pid),
            "--mount",
            str(self.programs / "kubelet"),
            f"--kubeconfig={self.kubeconfig(ADMIN)}",
            f"--config={folder}/kubelet.yaml",
            f"--root-dir={folder}/kubelet",
            f"--cert-dir={folder}/certs",
            f"--hostname-override={node}",
            "--cloud-provider=external",
        )
        self.spawn(
            f"{node}-gpus", str(self.programs / "deviceplugin"), f"{folder}/plugins", str(GPUS)
        )

    def gpus(self, node: str) -> int:
        status = self.request("GET", f"/api/v1/nodes/{node}")["status"]
        return int(status.get("allocatable", {}).get("nvidia.com/gpu", 0))

    def is_ready(self, node: str) -> bool:
        conditions = self.request("GET", f"/api/v1/nodes/{node}")["status"]["conditions"]
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def pods(self, namespace: str) -> list[Any]:
        rows: list[Any] = self.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return rows

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    def stop(self) -> None:
        """Stop all daemons, and then what runs in containers."""
        names = [name for name in self._processes if not name.endswith("-runtime")]
        for name in names:
            self._processes[name].send_signal(signal.SIGCONT)
            self._processes[name].kill()
        for name in names:
            self._processes[name].wait()
        for node in NODES:
            if f"{node}-runtime" in self._processes:
                self._stop_runtime(node)

    def _stop_runtime(self, node: str) -> None:
        ctr = ("ctr", "--address", f"{self.folder}/{node}/c.sock", "--namespace", "k8s.io")
        tasks = self.run(*ctr, "tasks", "list", "-q").stdout.split()
        for task in tasks:
            self.run(*ctr, "tasks", "delete", "--force", task)
        for name in self.run(*ctr, "containers", "list", "-q").stdout.split():
            self.run(*ctr, "containers", "delete", name)
        process = self._processes[f"{node}-runtime"]
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


@contextmanager
def control_plane(folder: Path, patience_s: float = START_S) -> Iterator[KubernetesCluster]:
    """Run etcd and an API server alone: without controllers, and without nodes."""
    cluster = KubernetesCluster(folder, patience_s)
    try:
        cluster.prepare()
        cluster.start_control_plane()
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def kubernetes_cluster(folder: Path, patience_s: float = START_S) -> Iterator[KubernetesCluster]:
    """Run a cluster in a folder, whose path has to be short for its sockets."""
    cluster = KubernetesCluster(folder, patience_s)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
