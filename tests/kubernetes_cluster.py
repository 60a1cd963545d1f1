"""A real Kubernetes on this machine: API server, etcd, controllers, and a kubelet for each of a few
nodes, with a containerd and a device plugin of its own.

Nothing is installed: where a program is missing, `missing` names it. The GPUs are names alone.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import signal
import ssl
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.kubernetes import build
from infra.machine.process import free_ports
from tests.patience import PATIENCE_S

NODES = ("g1", "g2", "g3")
GPUS = 4
IMAGE = "localhost/berth-test:1"
DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
"""The one path at which a kubelet listens to device plugins."""
ADMIN, EXECUTOR, TENANT = "admin-token", "executor-token", "tenant-token"
ACCOUNT = "system:serviceaccount:berth:berth-executor"
ROOT = Path(__file__).parents[1]
MANIFESTS = ROOT / "infra" / "kubernetes" / "manifests"
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


class ApiError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class KubernetesCluster:
    """The daemons; each can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.etcd_port, self.etcd_peer, self.port, self.controllers, *kubelets = free_ports(
            4 + len(NODES)
        )
        self.kubelet_ports = dict(zip(NODES, kubelets, strict=True))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._tls = ssl.create_default_context()
        self.programs = build.cache_dir()

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def kubeconfig(self, token: str) -> Path:
        """Return a kubeconfig of the user of a token."""
        path = self.folder / f"{token}.kubeconfig"
        cluster = {
            "server": self.server,
            "certificate-authority": str(self.folder / "certs" / "apiserver.crt"),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def prepare(self) -> None:
        """Write tokens and keys."""
        (self.folder / "certs").mkdir()
        tokens = (
            f'{ADMIN},admin,u1,"system:masters"\n'
            f'{EXECUTOR},{ACCOUNT},u2,"system:serviceaccounts"\n'
            f"{TENANT},mallory,u3\n"
        )
        (self.folder / "tokens.csv").write_text(tokens)
        key = self.folder / "sa.key"
        subprocess.run(
            ["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True
        )

    def start(self) -> None:
        self.prepare()
        self.start_control_plane()
        self._spawn(
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
        self._eventually(lambda: all(self.gpus(node) == GPUS for node in NODES), "nodes")
        self._eventually(lambda: all(self.is_ready(node) for node in NODES), "nodes")

    def start_control_plane(self) -> None:
        """Start etcd and the API server, where they do not run, on the data that is there."""
        client = f"http://127.0.0.1:{self.etcd_port}"
        if not self._runs("etcd"):
            self._start_etcd(client)
        self._start_api(client)
        self._eventually(self._answers, "the API server")

    def _runs(self, name: str) -> bool:
        return name in self._processes and self._processes[name].poll() is None

    def _start_etcd(self, client: str) -> None:
        peer = f"http://127.0.0.1:{self.etcd_peer}"
        self._spawn(
            "etcd",
            str(self.programs / "etcd"),
            f"--data-dir={self.folder}/etcd",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=error",
        )

    def _start_api(self, client: str) -> None:
        key = self.folder / "sa.key"
        self._spawn(
            "apiserver",
            str(self.programs / "apiserver"),
            f"--etcd-servers={client}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder}/certs",
            f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.255.0.0/24",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds",
            "--endpoint-reconciler-type=none",
            "--kubelet-preferred-address-types=InternalIP",
        )

    def restart_api(self) -> None:
        """Kill the API server, whose watches break, and start it again."""
        self.signal("apiserver", signal.SIGKILL)
        self.start_control_plane()

    def compact(self) -> None:
        """Have etcd drop all versions but the present one."""
        url = f"http://127.0.0.1:{self.etcd_port}/v3/kv"
        key = base64.b64encode(b"/").decode()
        revision = self._etcd(f"{url}/range", {"key": key})["header"]["revision"]
        self._etcd(f"{url}/compaction", {"revision": revision, "physical": True})

    def _etcd(self, url: str, body: object) -> Any:
        request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.loads(response.read())

    def _answers(self) -> bool:
        certificate = self.folder / "certs" / "apiserver.crt"
        if not certificate.exists():
            return False
        with suppress(ApiError, OSError, ValueError):
            self._tls = ssl.create_default_context(cafile=str(certificate))
            return str(self.request("GET", "/readyz")) == "ok"
        return False

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
        self._spawn(f"{node}-runtime", "unshare", "--mount", "sh", "-c", run)
        archive = self.folder / "image.tar"
        if not archive.exists():
            write_image(archive)
        ctr = ["ctr", "--address", f"{folder}/c.sock", "--namespace", "k8s.io"]
        self._eventually(lambda: (folder / "c.sock").exists(), "containerd")
        self._eventually(
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
        self._spawn(
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
        self._spawn(
            f"{node}-gpus", str(self.programs / "deviceplugin"), f"{folder}/plugins", str(GPUS)
        )

    def gpus(self, node: str) -> int:
        status = self.request("GET", f"/api/v1/nodes/{node}")["status"]
        return int(status.get("allocatable", {}).get("nvidia.com/gpu", 0))

    def is_ready(self, node: str) -> bool:
        conditions = self.request("GET", f"/api/v1/nodes/{node}")["status"]["conditions"]
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def signal(self, name: str, number: int) -> None:
        """Signal a daemon by its name, a node's kubelet by that of the node."""
        process = self._processes[name]
        process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            process.wait(PATIENCE_S)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        token: str = ADMIN,
        kind: str = "application/json",
    ) -> Any:
        """Return the answer of the API. Raises ApiError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=20) as response:
                text = response.read().decode()
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, error.read().decode(errors="replace")) from None
        return json.loads(text) if text.startswith("{") else text

    def patch(self, path: str, change: object) -> Any:
        return self.request("PATCH", path, change, kind="application/merge-patch+json")

    def apply(self, text: str, token: str = ADMIN) -> None:
        """Apply manifests as `kubectl apply --server-side` does. Raises ApiError."""
        for manifest in filter(None, yaml.safe_load_all(text)):
            self.request(
                "PATCH",
                f"{path_of(manifest)}?fieldManager=test&force=true",
                manifest,
                token,
                "application/apply-patch+yaml",
            )

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

    def _spawn(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def _eventually(self, holds: Callable[[], bool], what: str) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > end_s:
                raise TimeoutError(f"{what} did not come up; see {self.folder}")
            time.sleep(0.1)


def path_of(manifest: Any) -> str:
    """Return the path of an object of the API."""
    group, kind = manifest["apiVersion"], manifest["kind"].lower()
    metadata = manifest["metadata"]
    base = f"/api/{group}" if "/" not in group else f"/apis/{group}"
    space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return f"{base}{space}/{plural}/{metadata['name']}"


def write_image(path: Path) -> None:
    """Write an image of busybox alone, as an archive that `ctr images import` reads."""
    busybox = Path(shutil.which("busybox") or "").read_bytes()
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in ("bin", "tmp", "dev", "proc", "sys", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(entry)
        entry = tarfile.TarInfo("bin/busybox")
        entry.size, entry.mode = len(busybox), 0o755
        tar.addfile(entry, io.BytesIO(busybox))
        for name in ("sh", "sleep", "seq", "cat", "true", "env", "date"):
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "2147483647"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    files = {
        "layer.tar": layer.getvalue(),
        "config.json": json.dumps(config).encode(),
        "manifest.json": json.dumps(
            [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
        ).encode(),
    }
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


@contextmanager
def control_plane(folder: Path) -> Iterator[KubernetesCluster]:
    """Run etcd and an API server alone: without controllers, and without nodes."""
    cluster = KubernetesCluster(folder)
    try:
        cluster.prepare()
        cluster.start_control_plane()
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def kubernetes_cluster(folder: Path) -> Iterator[KubernetesCluster]:
    """Run a cluster in a folder, whose path has to be short for its sockets."""
    cluster = KubernetesCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def temporary_cluster() -> Iterator[KubernetesCluster]:
    """Run a cluster in a folder of its own; the test is skipped where a program is missing."""
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bk", dir="/tmp") as folder,
        kubernetes_cluster(Path(folder)) as cluster,
    ):
        yield cluster
