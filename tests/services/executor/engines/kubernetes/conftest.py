"""A control plane for the tests of this folder that need one, and an engine on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import EXECUTOR, MANIFESTS
from infra.kubernetes.image import IMAGE
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.manifests import PodOptions
from services.executor.core.kubernetes.names import gang_name
from services.executor.engines.kubernetes.access import access_of
from services.executor.engines.kubernetes.api import KubernetesApi
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from tests.patience import PATIENCE_S, until
from tests.real_clusters import kubernetes_control_plane
from tests.services.executor.core.engines.looks import gang_of, placed_history
from tests.services.executor.engines.kubernetes.real_api import NAMESPACE, PODS


@pytest.fixture(scope="package")
def cluster() -> Iterator[KubernetesCluster]:
    with kubernetes_control_plane() as running:
        for name in ("executor", "tenant", "admission"):
            running.apply((MANIFESTS / f"{name}.yaml").read_text())
        yield running


@pytest.fixture
async def engine(cluster: KubernetesCluster) -> AsyncIterator[KubernetesEngine]:
    api = KubernetesApi(access_of(cluster.kubeconfig(EXECUTOR)))
    made = KubernetesEngine(api, "berth", lambda tenant: NAMESPACE, PodOptions(IMAGE))
    task = asyncio.create_task(made.run(lambda: None))
    # One that is cancelled in the middle of a handshake leaves its socket to the collector.
    await until(lambda: not any(w.problem for w in (made.nodes, made.pods, made.records)))
    yield made
    task.cancel()
    await asyncio.wait([task])


@pytest.fixture
def gang(request: pytest.FixtureRequest) -> EngineGang:
    """Return a gang of three workers, of another placement in each test."""
    gang = gang_of(placed_history())
    return EngineGang(f"{gang.identity}/{request.node.name}", gang.workers)


@pytest.fixture
async def adopted(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> list[str]:
    """Return the paths of pods of a tenant that are the workers of the gang, once they are seen."""
    paths = []
    for worker in gang.workers:
        name = f"own-{worker.launch.rank}-{gang_name(gang.identity)[-6:]}"
        spec = {"schedulerName": "berth", "containers": [{"name": "c", "image": IMAGE}]}
        made = cluster.request("POST", PODS, {"metadata": {"name": name}, "spec": spec})
        worker.pod = made["metadata"]["uid"]
        paths.append(f"{PODS}/{name}")
    async with asyncio.timeout(PATIENCE_S):
        while not set(gang.pods) <= {pod.uid for pod in engine.pods.items.values()}:
            await asyncio.sleep(0.05)
    return paths
