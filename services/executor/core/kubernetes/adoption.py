"""Changes by which a pod of a tenant becomes a worker, and ceases to be one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.manifests import toleration_manifest
from services.executor.core.kubernetes.names import (
    FINALIZER,
    IDENTITY,
    JOB,
    RANK,
    TENANT,
    label_value,
)
from services.executor.core.kubernetes.nodes import Toleration
from services.executor.core.kubernetes.pods import PodSeen


class Unadoptable(Exception):
    """A pod is not there any more, or cannot be the worker of this gang."""


def pods_by_rank(gang: EngineGang, namespace: str, pods: Iterable[PodSeen]) -> tuple[PodSeen, ...]:
    """Return the pods of a gang in the order of its ranks. Raises Unadoptable.

    Those of another namespace than the tenant's are as if they were not there.
    """
    by_uid = {pod.uid: pod for pod in pods if pod.namespace == namespace}
    absent = next((uid for uid in gang.pods if uid not in by_uid), None)
    if absent is not None:
        raise Unadoptable(f"pod {absent} is not in namespace {namespace} of its tenant")
    return tuple(by_uid[uid] for uid in gang.pods)


def adoption_change(
    pod: PodSeen, gang: EngineGang, rank: int, tolerations: Iterable[Toleration]
) -> dict[str, Any]:
    """Return the patch that makes a pod the worker of a rank, empty if it is. Raises Unadoptable.

    It gets the tolerations of the pool, which bind no other pod, and applies to this version alone.
    """
    name = f"pod {pod.namespace}/{pod.name}"
    if pod.uid != gang.pods[rank]:
        raise Unadoptable(f"{name} is another one than was submitted")
    if pod.identity == gang.identity and pod.rank == rank:
        return {}
    if pod.identity or pod.request is None:
        raise Unadoptable(f"{name} is of {pod.identity or 'another scheduler'}")
    if pod.node or pod.is_deleted or pod.is_over:
        state = f"bound to {pod.node}" if pod.node else "deleted, or over"
        raise Unadoptable(f"{name} is {state}")
    present = pod.request.tolerations
    more = [toleration_manifest(one) for one in tolerations]
    return {
        "metadata": {
            "resourceVersion": pod.version,
            "labels": {JOB: label_value(gang.launch.job_id), TENANT: gang.launch.tenant},
            "annotations": {IDENTITY: gang.identity, RANK: str(rank)},
            "finalizers": [*(name for name in pod.finalizers if name != FINALIZER), FINALIZER],
        },
        "spec": {"tolerations": [*present, *(one for one in more if one not in present)]},
    }


def release_change(pod: PodSeen, uid: str) -> dict[str, Any]:
    """Return the patch that gives a pod back, empty where it is not the one that was taken."""
    if pod.uid != uid or not (pod.identity or pod.is_kept):
        return {}
    return {
        "metadata": {
            "resourceVersion": pod.version,
            "annotations": {IDENTITY: None, RANK: None},
            "finalizers": [name for name in pod.finalizers if name != FINALIZER],
        }
    }
