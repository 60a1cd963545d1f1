"""Pods that users created, as a cluster shows them, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from services.executor.core.kubernetes.names import GPU
from services.executor.core.kubernetes.pods import PodSeen, pod_of

NAMESPACE = "berth-ada"


def uid_of(name: str) -> str:
    """Return a UID of the form of Kubernetes that follows from a name of up to 6 characters."""
    return f"00000000-0000-0000-0000-{name.encode().hex():0>12}"


def user_row(
    name: str = "a-0",
    *,
    group: str = "",
    size: int | str | None = None,
    gpus: int = 1,
    created: int = 0,
    node: str = "",
    phase: str = "Pending",
    namespace: str = NAMESPACE,
    message: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    named = {"berth/group": group} if group else {}
    sized = {} if size is None else {"berth/group-size": str(size)}
    conditions = [{"type": "PodScheduled", "status": "False", "message": message}]
    resources = {"limits": {GPU: str(gpus), "memory": "2Gi"}, "requests": {"cpu": "500m"}}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid_of(name),
            "resourceVersion": "7",
            "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
            "labels": {**named, **(labels or {})},
            "annotations": {**sized, **(annotations or {})},
            **(metadata or {}),
        },
        "spec": {
            "schedulerName": "berth",
            "nodeName": node,
            "containers": [{"name": "main", "resources": resources}],
            **spec,
        },
        "status": {"phase": phase, "conditions": conditions},
    }


def user_pod(name: str = "a-0", **fields: Any) -> PodSeen:
    return pod_of(user_row(name, **fields))
