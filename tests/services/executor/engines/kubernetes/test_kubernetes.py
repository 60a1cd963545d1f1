"""The engine on a real API server: its rights, its owners, compaction."""

from __future__ import annotations

import asyncio

import pytest

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import EXECUTOR, ApiError
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
from services.executor.core.kubernetes.names import IDENTITY, gang_name
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from tests.patience import PATIENCE_S
from tests.services.executor.engines.kubernetes.real_api import NAMESPACE, PODS, pods_of, seen

pytestmark = [pytest.mark.process, pytest.mark.parts]


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


def marks_of(cluster: KubernetesCluster, path: str) -> tuple[bool, bool]:
    """Return whether a pod has an identity, and whether it has Berth's finalizer."""
    metadata = cluster.request("GET", path)["metadata"]
    kept = "berth/reported" in metadata.get("finalizers", ())
    return IDENTITY in metadata.get("annotations", {}), kept


async def test_a_late_executor_adopts_no_pod_of_a_gang_that_is_decided(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, adopted: list[str]
) -> None:
    await engine.act(Forbid(gang.identity))
    assert await engine.act(Submit(gang)) is None
    assert [marks_of(cluster, path) for path in adopted] == [(False, False)] * 3


async def test_adopted_pods_of_which_the_record_is_gone_are_given_back(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, adopted: list[str]
) -> None:
    name = gang_name(gang.identity)
    assert await engine.act(Submit(gang)) is None
    assert [marks_of(cluster, path) for path in adopted] == [(True, True)] * 3
    cluster.request("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/berth/leases/{name}")
    async with asyncio.timeout(PATIENCE_S):
        while any(all(marks_of(cluster, path)) for path in adopted):
            await engine.act(Kill(name))
            await asyncio.sleep(0.05)
    assert [marks_of(cluster, path) for path in adopted] == [(False, False)] * 3
