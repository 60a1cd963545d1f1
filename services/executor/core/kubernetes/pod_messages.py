"""Words of Berth on a pod that waits: its condition, and an event, as a scheduler writes them."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from services.executor.core.kubernetes.names import BERTH
from services.executor.core.kubernetes.pod_requests import SCHEDULED
from services.executor.core.kubernetes.pods import PodSeen

WAITS = "Unschedulable"
"""The reason of Kubernetes itself for a pod without a node."""
NO_NODE = "FailedScheduling"


def condition_change(pod: PodSeen, text: str, at_ms: int) -> dict[str, Any]:
    """Return a strategic patch of the status of that pod, and of no later one of its name."""
    condition = {
        "type": SCHEDULED,
        "status": "False",
        "reason": WAITS,
        "message": text,
        "lastTransitionTime": _time(at_ms),
    }
    return {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}


def event_manifest(pod: PodSeen, text: str, at_ms: int) -> dict[str, Any]:
    """Return the event of a text; the same one at the same second has the same name."""
    digest = hashlib.sha256(f"{pod.uid} {_time(at_ms)} {text}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name[:200]}.{digest}", "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
        "type": "Warning",
        "reason": NO_NODE,
        "message": text,
        "source": {"component": BERTH},
        "firstTimestamp": _time(at_ms),
        "lastTimestamp": _time(at_ms),
        "count": 1,
    }


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
