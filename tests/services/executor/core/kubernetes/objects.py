"""Objects of the API as a cluster shows them, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from services.executor.core.kubernetes.gangs import KubernetesGang, Pods
from services.executor.core.kubernetes.names import (
    FINALIZER,
    GPU,
    IDENTITY,
    RANK,
    gang_name,
    pod_name,
)
from services.executor.core.kubernetes.pods import PodSeen, pod_of
from services.executor.core.kubernetes.records import GangRecord

IDENTITY_TEXT = "berth:here:gpu:1/5/0"
GANG = gang_name(IDENTITY_TEXT)
NAMESPACE = "berth-ada"


def pod_row(
    name: str = "other",
    node: str = "n1",
    phase: str = "Running",
    gpus: int = 1,
    state: dict[str, Any] | None = None,
    namespace: str = NAMESPACE,
    metadata: dict[str, Any] | None = None,
    **status: Any,
) -> dict[str, Any]:
    statuses = [{"name": "worker", "state": state or {}}]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **(metadata or {}),
        },
        "spec": {
            "nodeName": node,
            "containers": [
                {"name": "worker", "resources": {"limits": {GPU: str(gpus), "cpu": "500m"}}}
            ],
        },
        "status": {"phase": phase, "containerStatuses": statuses, **status},
    }


def gang_pod(
    rank: int = 0, *, deleted: bool = False, marked: bool = False, **fields: Any
) -> PodSeen:
    """Return the pod of a rank of the gang."""
    annotations = {IDENTITY: IDENTITY_TEXT, RANK: str(rank)}
    metadata: dict[str, Any] = {"annotations": annotations, "finalizers": [FINALIZER]}
    if marked:
        annotations["berth/ended"] = "true"
    if deleted or marked:
        metadata["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    return pod_of(pod_row(pod_name(GANG, rank), metadata=metadata, **fields))


def terminated(
    code: int, finished: str = "2026-01-01T00:00:10Z", reason: str = "Error", message: str = ""
) -> dict[str, Any]:
    """Return the state of a container that ran from second 3 on."""
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": "2026-01-01T00:00:03Z",
            "finishedAt": finished,
        }
    }


def ended_pod(
    rank: int, code: int, finished: str = "2026-01-01T00:00:10Z", **fields: Any
) -> PodSeen:
    phase = "Failed" if code else "Succeeded"
    return gang_pod(rank, phase=phase, state=terminated(code, finished), **fields)


def gang(decided: str, *pods: PodSeen, workers: int = 2) -> KubernetesGang:
    record = GangRecord(GANG, IDENTITY_TEXT, NAMESPACE, workers, decided, "7")
    return Pods({pod.key: pod for pod in pods}).of(record)
