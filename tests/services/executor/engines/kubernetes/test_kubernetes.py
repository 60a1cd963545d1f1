"""The engine on a real API server: its rights and those of others, owners, compaction."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.executor.core.engines.contract import (
    Action,
    EnginePhase,
    Forbid,
    Forget,
    Kill,
    Start,
    Submit,
)
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.manifests import PodOptions
from services.executor.core.kubernetes.names import IDENTITY, RANK, gang_name
from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.access import access_of
from services.executor.engines.kubernetes.api import KubernetesApi
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from tests.kubernetes_cluster import (
    ADMIN,
    EXECUTOR,
    IMAGE,
    MANIFESTS,
    TENANT,
    ApiError,
    KubernetesCluster,
    control_plane,
    missing,
)
from tests.patience import PATIENCE_S
from tests.services.executor.core.engines.looks import gang_of, placed_history

pytestmark = [pytest.mark.process, pytest.mark.parts]
NAMESPACE = "berth-vision"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubernetesCluster]:
    if reason := missing():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="bk", dir="/tmp") as folder,
        control_plane(Path(folder)) as running,
    ):
        for name in ("executor", "tenant", "admission"):
            running.apply((MANIFESTS / f"{name}.yaml").read_text())
        yield running


@pytest.fixture
async def engine(cluster: KubernetesCluster) -> AsyncIterator[KubernetesEngine]:
    api = KubernetesApi(access_of(cluster.kubeconfig(EXECUTOR)))
    made = KubernetesEngine(api, "berth", lambda tenant: NAMESPACE, PodOptions(IMAGE))
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.wait([task])


@pytest.fixture
def gang(request: pytest.FixtureRequest) -> EngineGang:
    """Return a gang of three workers, of another placement in each test."""
    gang = gang_of(placed_history())
    return EngineGang(f"{gang.identity}/{request.node.name}", gang.workers)


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


async def test_a_gang_is_there_unbound_and_its_first_pod_owns_the_rest(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    assert await engine.act(Submit(gang)) is None
    assert await engine.act(Submit(gang)) is None, "it may be repeated"
    assert await seen(engine, gang, 3) is EnginePhase.RUNNING
    first, *others = pods_of(cluster, gang)
    assert all("nodeName" not in pod["spec"] for pod in (first, *others))
    owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in others}
    assert owners == {first["metadata"]["uid"]}
    service = f"/api/v1/namespaces/{NAMESPACE}/services/{gang_name(gang.identity)}"
    made = cluster.request("GET", service)
    assert made["spec"]["clusterIP"] == "None"
    assert made["metadata"]["ownerReferences"][0]["uid"] == first["metadata"]["uid"]


async def test_what_is_forbidden_is_never_bound_and_leaves_nothing(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    await engine.act(Forbid(gang.identity))
    await engine.act(Start(gang, gang_name(gang.identity)))
    assert all("nodeName" not in pod["spec"] for pod in pods_of(cluster, gang))
    progress = (await engine.observe([gang.identity])).progress[gang.identity]
    while not progress.is_forbidden:
        await asyncio.sleep(0.05)
        progress = (await engine.observe([gang.identity])).progress[gang.identity]
    await engine.act(Kill(gang_name(gang.identity)))
    assert await seen(engine, gang, 0) is EnginePhase.ENDED
    await engine.act(Forget(gang_name(gang.identity)))
    while (await engine.observe([gang.identity])).jobs_of(gang.identity):
        await asyncio.sleep(0.05)


async def test_of_a_start_and_a_forbidding_at_once_one_is_decided(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    orders: tuple[Action, ...] = (Start(gang, gang_name(gang.identity)), Forbid(gang.identity))
    await asyncio.gather(*map(engine.act, orders))
    record = "/apis/coordination.k8s.io/v1/namespaces/berth/leases/" + gang_name(gang.identity)
    decided = cluster.request("GET", record)["spec"]["holderIdentity"]
    bound = [pod for pod in pods_of(cluster, gang) if "nodeName" in pod["spec"]]
    assert (decided, len(bound)) in (("started", 3), ("forbidden", 0))


async def test_what_the_api_refuses_is_refused_in_its_words(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    for worker in gang.workers:
        worker.launch = worker.launch.model_copy(update={"env": {"not = a name": "1"}})
    failure = await engine.act(Submit(gang))
    assert failure is not None and failure.permanent
    assert failure.reason == "engine_refused" and "not = a name" in failure.detail


async def test_a_gang_ends_with_its_pods_and_is_forgotten_with_all_that_it_had(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    """No kubelet runs here: what it notes of a container is written by hand."""
    name = gang_name(gang.identity)
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    await engine.act(Start(gang, name))
    nodes = [pod["spec"]["nodeName"] for pod in pods_of(cluster, gang)]
    assert nodes == ["n2", "n1", "n1"], "by rank, as they were placed"
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:02Z"}
    state = {"terminated": {"exitCode": 3, "reason": "Error", **times}}
    own = {"name": "worker", "state": state, "image": "", "imageID": "", "ready": False}
    status = {"phase": "Failed", "containerStatuses": [{**own, "restartCount": 0}]}
    for pod in pods_of(cluster, gang):
        path = f"{PODS}/{pod['metadata']['name']}"
        cluster.patch(f"{path}/status", {"status": status})
        cluster.request("DELETE", path, {"gracePeriodSeconds": 0})
    while await seen(engine, gang, 3) is not EnginePhase.ENDED:
        await asyncio.sleep(0.05)
    ends = (await engine.observe([gang.identity])).progress[gang.identity].ends
    assert {(end.exit_code, end.ran_ms) for end in ends.values()} == {(3, 2000)}
    await engine.act(Forget(name))
    await seen(engine, gang, 0)
    with pytest.raises(ApiError, match="404"):
        cluster.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/berth/leases/{name}")


async def test_a_watch_survives_compaction(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    engine.pods.version = "1"
    listed = engine.pods.listed
    cluster.compact()
    cluster.restart_api()
    for pod in pods_of(cluster, gang):
        cluster.patch(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"labels": {"x": "y"}}})
    assert await seen(engine, gang, 3) is EnginePhase.RUNNING
    async with asyncio.timeout(PATIENCE_S):
        while engine.pods.listed == listed:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps"),
        ("DELETE", f"/api/v1/namespaces/{NAMESPACE}"),
        ("DELETE", "/api/v1/nodes/g1"),
        ("DELETE", "/api/v1/namespaces/default/pods/any"),
        ("GET", "/api/v1/namespaces/default/pods/any/log"),
        ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/g1"),
    ],
)
def test_the_executor_may_do_no_more_than_it_needs(
    cluster: KubernetesCluster, method: str, path: str
) -> None:
    with pytest.raises(ApiError) as refused:
        cluster.request(method, path, token=EXECUTOR)
    assert refused.value.status == 403


def test_no_other_user_makes_a_pod_that_counts_as_berths(cluster: KubernetesCluster) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mallory", "namespace": NAMESPACE},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:aggregate-to-edit",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    }
    cluster.request(
        "POST",
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
        role,
        ADMIN,
    )
    marks = {IDENTITY: "berth:here:gpu:1/5/0", RANK: "0"}
    plain = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c", "image": IMAGE}]}}
    cluster.request("POST", PODS, plain, TENANT)
    forged = {**plain, "metadata": {"name": "forged", "annotations": marks}}
    for method, path, body, kind in (
        ("POST", PODS, forged, "application/json"),
        (
            "PATCH",
            f"{PODS}/plain",
            {"metadata": {"annotations": marks}},
            "application/merge-patch+json",
        ),
    ):
        with pytest.raises(ApiError, match="by Berth's executor alone"):
            cluster.request(method, path, body, TENANT, kind)
