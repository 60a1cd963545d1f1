"""Gangs on a real API server, without nodes: what they have there, by its own answers."""

from __future__ import annotations

import asyncio
from typing import Any

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import ADMIN
from services.executor.core.engines.contract import EnginePhase
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.names import gang_name
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from tests.patience import PATIENCE_S

NAMESPACE = "berth-vision"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
RECORDS = "/apis/coordination.k8s.io/v1/namespaces/berth/leases"
BINDINGS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"


async def seen(engine: KubernetesEngine, gang: EngineGang, count: int) -> EnginePhase | None:
    """Wait until the watches show that many pods of the gang; return its phase."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await asyncio.sleep(0.05)
            name = gang_name(gang.identity)
            pods = [pod for _, pod in engine.pods.items if pod.startswith(name)]
            try:
                state = await engine.observe([gang.identity])
            except EngineAway:
                continue
            if len(pods) == count:
                jobs = state.jobs_of(gang.identity)
                return jobs[0].phase if jobs else None


def pods_of(cluster: KubernetesCluster, gang: EngineGang) -> list[Any]:
    name = gang_name(gang.identity)
    return [p for p in cluster.pods(NAMESPACE) if p["metadata"]["name"].startswith(name)]


def own_namespace(cluster: KubernetesCluster, user: str) -> None:
    """Give a user every right in the tenant's namespace, as some sites give to tenants."""
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": user, "namespace": NAMESPACE},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    cluster.request("POST", BINDINGS, binding, ADMIN)
