"""A stage on which users create pods, and the test is gateway, admission and placement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import EXECUTOR, MANIFESTS, ApiError
from infra.kubernetes.image import IMAGE
from services.executor.engines.server import EngineServer
from services.executor.serve import kubernetes_server
from services.executor.settings import ExecutorSettings
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.contracts.access import TenantRegistered
from shared.contracts.identity import derive_job_id
from shared.contracts.job_spec import JobSpec
from shared.contracts.reports import WorkerReady, WorkerRefused
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from tests.services.executor.conformance.kubernetes_stage import OTHERS, KubernetesStage
from tests.services.executor.core.kubernetes.controller_pods import (
    INDEX,
    jobset_labels,
    torchrun,
    training_labels,
)
from tests.services.executor.facts import enqueued, started

TENANT_OF_PODS = "ada"
GROUP, SIZE = "berth/group", "berth/group-size"


class PodStage(KubernetesStage):
    """The namespace of a stage is that of the tenant `ada`, whose default pool is the stage's."""

    def __init__(self, folder: Path, cluster: KubernetesCluster) -> None:
        super().__init__(folder, cluster)
        self.admission = LedgerWriter(self.broker, "admission")

    def make(self, settings: ExecutorSettings) -> EngineServer:
        return kubernetes_server(settings, self.connect, self.metrics)

    def start(self, **more: object) -> None:
        own = {
            "kubernetes_config": self.cluster.kubeconfig(EXECUTOR),
            "kubernetes_namespaces": f"{TENANT_OF_PODS}:{self.namespace}",
            "kubernetes_pods": True,
        }
        super().start(**{**own, **more})

    async def serving(self, **more: object) -> None:
        for name in ("tenant", "pods"):
            text = (MANIFESTS / f"{name}.yaml").read_text()
            self.cluster.apply(text.replace("berth-vision", self.namespace))
        tenant = TenantRegistered(tenant=TENANT_OF_PODS, default_pool=self.name)
        self.placement.write([self.pool])
        self.access.write([tenant])
        await super().serving(**more)

    def pod(self, name: str, script: str, gpus: int = 1, **metadata: Any) -> dict[str, Any]:
        """Return a pod as a user writes it."""
        return {"metadata": {"name": name, **metadata}, "spec": pod_spec(script, gpus)}

    def gang_pod(self, name: str, group: str, size: int, script: str) -> dict[str, Any]:
        return self.pod(name, script, labels={GROUP: group}, annotations={SIZE: str(size)})

    def create(self, *pods: dict[str, Any]) -> None:
        for pod in pods:
            self.cluster.request("POST", f"/api/v1/namespaces/{self.namespace}/pods", pod)

    def create_job(self, name: str, workers: int, script: str) -> None:
        metadata = {"labels": {GROUP: name}, "annotations": {SIZE: str(workers)}}
        self._create_job(name, workers, metadata, pod_spec(script, 1))

    def create_jobset(self, name: str, jobs: int, workers: int, script: str) -> None:
        """Create the jobs of a JobSet as its controller does, with the size as a user gives it."""
        for job in range(jobs):
            labels = jobset_labels(name, job, 0)
            del labels[INDEX]
            metadata = {"labels": labels, "annotations": {SIZE: str(jobs * workers)}}
            self._create_job(f"{name}-workers-{job}", workers, metadata, pod_spec(script, 1))

    def replica(self, name: str, kind: str, index: int, nodes: int, script: str) -> dict[str, Any]:
        """Return a pod of a PyTorchJob as its controller makes it."""
        pod = self.pod(f"{name}-{kind}-{index}", script, labels=training_labels(name, kind, index))
        pod["spec"]["containers"][0] |= {"env": torchrun(str(nodes))[0]["env"]}
        return pod

    def _create_job(
        self, name: str, workers: int, metadata: dict[str, Any], spec: dict[str, Any]
    ) -> None:
        job = {
            "metadata": {"name": name},
            "spec": {
                "parallelism": workers,
                "completions": workers,
                "completionMode": "Indexed",
                "backoffLimit": 20,
                "template": {"metadata": metadata, "spec": spec},
            },
        }
        self.cluster.request("POST", f"/apis/batch/v1/namespaces/{self.namespace}/jobs", job)

    def job_status(self, name: str) -> dict[str, Any]:
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"
        status: dict[str, Any] = self.cluster.request("GET", path)["status"]
        return status

    def user_pod(self, name: str) -> Any:
        return self.cluster.request("GET", f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def user_pods(self) -> list[Any]:
        return self.cluster.pods(self.namespace)

    def phase(self, name: str) -> str:
        return self._phase(self.namespace, name)

    def message(self, name: str) -> str:
        """Return the message of the condition PodScheduled of a pod."""
        conditions = self.user_pod(name)["status"].get("conditions") or ()
        return "".join(c.get("message", "") for c in conditions if c["type"] == "PodScheduled")

    def events(self, name: str) -> list[str]:
        """Return the messages of Berth's events about a pod."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        rows = self.cluster.request("GET", path)["items"]
        return [
            row["message"]
            for row in rows
            if row["involvedObject"]["name"] == name and row["source"].get("component") == "berth"
        ]

    def enqueue(self, job_id: str, spec: JobSpec) -> None:
        self.write(enqueued(job_id, spec))

    async def begin_placed(self, job_id: str) -> None:
        """Start a gang that is placed, once its workers are ready."""
        await self.wait_for(WorkerReady)
        self.write(started(job_id).model_copy(update={"master_port": None}))

    async def refusals(self, number: int) -> list[WorkerRefused]:
        return await self.wait_for(WorkerRefused, number)

    def running(self) -> set[str]:
        """Return the UIDs of the pods that run."""
        pods = self.cluster.pods(self.namespace)
        return {pod["metadata"]["uid"] for pod in pods if pod["status"]["phase"] == "Running"}

    def log_of(self, name: str) -> str:
        return self._log(self.namespace, name)

    def delete(self, name: str) -> None:
        self._delete(self.user_pod(name), 1)

    def stranger(self) -> Any:
        """Return a pod that waits for Berth in a namespace without a tenant; create it first."""
        name, path = f"{self.name}-stranger", f"/api/v1/namespaces/{OTHERS}/pods"
        try:
            return self.cluster.request("POST", path, self.pod(name, "exit 0"))
        except ApiError as error:
            assert error.status == 409
            return self.cluster.request("GET", f"{path}/{name}")

    def submitted(self) -> dict[str, JobSpec]:
        """Return the jobs that were submitted, each once, by id."""
        jobs: dict[str, JobSpec] = {}
        for kind, body in self._commands():
            if kind == "job.submit.v1":
                job_id = derive_job_id(TENANT_OF_PODS, self.name, body["idempotency_key"])
                spec = JobSpec.model_validate(body["spec"])
                assert jobs.setdefault(job_id, spec) == spec, "a repetition is the same"
        return jobs

    def cancelled(self) -> set[str]:
        return {body["job_id"] for kind, body in self._commands() if kind == "job.cancel.v1"}

    def _commands(self) -> list[tuple[str, dict[str, Any]]]:
        entries = self.broker.entries(TP(f"submissions.{TENANT_OF_PODS}", 0))
        envelopes = [cloudevents.decode(entry.value) for entry in entries]
        return [(envelope.type, json.loads(envelope.body)) for envelope in envelopes]

    async def job(self, number: int = 1) -> tuple[str, JobSpec]:
        """Wait until that many jobs were submitted; return the last one."""
        await self.until(lambda: len(self.submitted()) >= number)
        assert len(self.submitted()) == number
        return list(self.submitted().items())[-1]


def pod_spec(script: str, gpus: int) -> dict[str, Any]:
    """Return a pod whose container has a name of the user's own, on the network of its node."""
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-c", script],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    return {
        "schedulerName": "berth",
        "restartPolicy": "Never",
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
