"""The stage of a real Kubernetes: its kubelets run the workers, and it has no scheduler."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any

from infra.kubernetes.cluster import NODES, KubernetesCluster
from infra.kubernetes.control_plane import EXECUTOR, MANIFESTS, ApiError
from infra.kubernetes.image import IMAGE
from services.executor.core.engines.gangs import Identity
from services.executor.core.kubernetes.manifests import PodOptions
from services.executor.core.kubernetes.names import gang_name
from services.executor.engines.kubernetes.access import access_of
from services.executor.engines.kubernetes.api import KubernetesApi
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from services.executor.engines.server import EngineServer
from services.executor.settings import ExecutorSettings
from tests.services.executor.conformance.stages import EngineStage, pools

OTHERS = "default"
OVER = ("Succeeded", "Failed")


class KubernetesStage(EngineStage):
    """All nodes of a cluster; the pods of a stage have a namespace of their own."""

    BACKEND = "kubernetes"
    LACKS = {"requeue": "Kubernetes starts no such pod a second time"}
    GPUS_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
    DRAINED = "Kubernetes: cordoned"
    WAITS = ("engine_refused", "exceeded quota")
    ZOMBIE = "engine_cancelled"

    def __init__(self, folder: Path, cluster: KubernetesCluster) -> None:
        self.name = f"pool{next(pools)}"
        super().__init__(folder, pool=self.name, backends=("kubernetes",), release=1)
        self.expected_nodes = len(NODES)
        self.cluster = cluster
        self.namespace = f"berth-{self.name}"
        self.names = Counter[str]()

    def make(self, settings: ExecutorSettings) -> EngineServer:
        engine = KubernetesEngine(
            KubernetesApi(access_of(self.cluster.kubeconfig(EXECUTOR))),
            "berth",
            lambda tenant: self.namespace,
            PodOptions(image=IMAGE, network="host"),
        )
        return EngineServer(settings, self.name, engine, self.connect, self.metrics)

    def start(self, **more: object) -> None:
        own = {"nodes": None, "kubernetes_pool": self.name, "kubernetes_poll_s": 0.2}
        super().start(**{**own, **more})

    async def serving(self, **more: object) -> None:
        text = (MANIFESTS / "tenant.yaml").read_text()
        self.cluster.apply(text.replace("berth-vision", self.namespace))
        self.placement.write([self.pool])
        await super().serving(**more)

    def second(self) -> KubernetesStage:
        other = KubernetesStage(self.folder / "other", self.cluster)
        other.broker, other.name, other.namespace = self.broker, self.name, self.namespace
        return other

    def refs(self) -> list[str]:
        return [pod["metadata"]["uid"] for pod in self.cluster.pods(self.namespace)]

    def runs_of(self, place: str) -> int:
        gang = gang_name(Identity("", self.name, place).text)
        return self._log(self.namespace, f"{gang}-0").split().count("ran")

    def _log(self, namespace: str, name: str) -> str:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
        return str(self.cluster.request("GET", path))

    def kill_controller(self) -> None:
        self.cluster.signal("apiserver", SIGKILL)
        self.cluster.signal("etcd", SIGKILL)
        self.cluster.start_control_plane()

    def drain(self, node: str) -> None:
        self.cluster.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})

    def resume(self, node: str) -> None:
        self.cluster.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})

    async def occupy(self, node: str, gpus: int) -> tuple[str, set[str]]:
        self.names["other"] += 1
        name = f"{self.name}-other-{self.names['other']}"
        container = {
            "name": "main",
            "image": IMAGE,
            "command": ["sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES; exec sleep 300"],
            "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
        }
        pod = {
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                "hostNetwork": True,
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
            },
        }
        self.cluster.request("POST", f"/api/v1/namespaces/{OTHERS}/pods", pod)
        await self.until(lambda: self._phase(OTHERS, name) == "Running")
        await self.until(lambda: bool(self._log(OTHERS, name)))
        return f"pod {OTHERS}/{name}", set(self._log(OTHERS, name).strip().split(","))

    def _phase(self, namespace: str, name: str) -> str:
        pod = self.cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        return str(pod["status"]["phase"])

    async def hold_back(self) -> None:
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}
        path = f"/api/v1/namespaces/{self.namespace}/resourcequotas"
        self.cluster.request("POST", path, quota)
        await self.until(
            lambda: "hard" in self.cluster.request("GET", f"{path}/none").get("status", {})
        )

    def freeze(self, node: str) -> None:
        self.cluster.signal(node, SIGSTOP)

    def thaw(self, node: str) -> None:
        self.cluster.signal(node, SIGCONT)

    async def cancel(self, ref: str) -> None:
        pod = next(p for p in self.cluster.pods(self.namespace) if p["metadata"]["uid"] == ref)
        self._delete(pod, 30)

    async def give_up(self, node: str) -> None:
        """Wait until it is not ready, and remove its pods by force, as operators do."""
        await self.until(lambda: not self.cluster.is_ready(node))
        for pod in self.cluster.pods(self.namespace):
            self._delete(pod, 0)

    def _delete(self, pod: Any, grace_s: int) -> None:
        path = self._path(pod)
        try:
            self.cluster.request("DELETE", path, {"gracePeriodSeconds": grace_s})
        except ApiError as error:
            if error.status != 404:
                raise

    def _path(self, pod: Any) -> str:
        metadata = pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

    async def clean(self) -> None:
        """End all pods, those of others too, by their kubelets; then forget them."""
        await super().clean()
        while pods := [*self.cluster.pods(self.namespace), *self.cluster.pods(OTHERS)]:
            for pod in pods:
                is_over = pod["status"]["phase"] in OVER or "nodeName" not in pod["spec"]
                if is_over and pod["metadata"].get("finalizers"):
                    try:
                        self.cluster.patch(self._path(pod), {"metadata": {"finalizers": None}})
                    except ApiError as error:
                        assert error.status == 404
                self._delete(pod, 0 if is_over else 1)
            await asyncio.sleep(0.1)
