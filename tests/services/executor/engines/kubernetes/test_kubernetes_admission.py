"""The admission policy on a real API server: what a tenant may not do to pods of Berth."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

import pytest

from infra.kubernetes.cluster import TENANT, KubernetesCluster
from infra.kubernetes.control_plane import ApiError
from infra.kubernetes.image import IMAGE
from services.executor.core.engines.contract import Forbid, Start, Submit
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.manifests import binding_manifest
from services.executor.core.kubernetes.names import (
    ENDED,
    FINALIZER,
    GANG,
    IDENTITY,
    JOB,
    RANK,
    gang_name,
)
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from tests.patience import PATIENCE_S, until
from tests.services.executor.engines.kubernetes.real_api import (
    NAMESPACE,
    PODS,
    own_namespace,
    pods_of,
)

pytestmark = [pytest.mark.process, pytest.mark.parts]
BINDINGS = f"/api/v1/namespaces/{NAMESPACE}/bindings"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
CONTAINERS = [{"name": "c", "image": IMAGE}]
FAILED = {"status": {"phase": "Failed"}}


@pytest.fixture(scope="module")
def tenant(cluster: KubernetesCluster) -> str:
    """Return a tenant's token, once the policies are in force, which takes the API a moment."""
    own_namespace(cluster, "mallory")
    forged = {"metadata": {"name": "f", "labels": {JOB: "j"}}, "spec": {"containers": CONTAINERS}}
    end_s = monotonic() + PATIENCE_S
    while monotonic() < end_s:
        try:
            cluster.request("POST", f"{PODS}?dryRun=All", forged, TENANT)
        except ApiError as error:
            if "berth-pods" in str(error):
                break
        sleep(0.05)
    binding = binding_manifest(f"berth-{'0' * 20}-0", "u", "n1")
    while monotonic() < end_s:
        try:
            cluster.request("POST", f"{BINDINGS}?dryRun=All", binding, TENANT)
        except ApiError as error:
            if "berth-bindings" in str(error):
                break
        sleep(0.05)
    return TENANT


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {IDENTITY: "berth:here:gpu:1/5/0", RANK: "0"}},
        {"annotations": {ENDED: "true"}},
        {"annotations": {"berth/of-a-later-release": "x"}},
        {"labels": {GANG: "berth-0"}},
        {"labels": {JOB: "j"}},
        {"finalizers": [FINALIZER]},
        {
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}
            ]
        },
    ],
)
def test_a_tenant_makes_no_pod_that_counts_as_one_of_berth_or_of_a_node(
    cluster: KubernetesCluster, tenant: str, metadata: dict[str, Any]
) -> None:
    forged = {"metadata": {"name": "forged", **metadata}, "spec": {"containers": CONTAINERS}}
    with pytest.raises(ApiError, match="berth-pods"):
        cluster.request("POST", PODS, forged, tenant)
    plain = {"metadata": {"generateName": "plain-"}, "spec": {"containers": CONTAINERS}}
    name = cluster.request("POST", PODS, plain, tenant)["metadata"]["name"]
    paths = [f"{PODS}/{name}"]
    if not metadata.keys() & {"finalizers", "ownerReferences"}:
        paths.append(f"{PODS}/{name}/status")
    for path in paths:
        with pytest.raises(ApiError, match="berth-pods"):
            cluster.request("PATCH", path, {"metadata": metadata}, tenant, MERGE)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("", {"metadata": {"annotations": {ENDED: "true"}}}),
        ("", {"metadata": {"annotations": None}}),
        ("", {"metadata": {"labels": {JOB: None}}}),
        ("", {"metadata": {"finalizers": None}}),
        ("/status", {"metadata": {"annotations": {IDENTITY: None}}}),
        ("/status", FAILED),
        (
            "/resize",
            {"spec": {"containers": [{"name": "worker", "resources": {"requests": {"cpu": "9"}}}]}},
        ),
    ],
)
async def test_a_tenant_changes_no_pod_of_berth(
    cluster: KubernetesCluster,
    engine: KubernetesEngine,
    gang: EngineGang,
    tenant: str,
    path: str,
    change: dict[str, Any],
) -> None:
    await engine.act(Submit(gang))
    pod = pods_of(cluster, gang)[1]
    with pytest.raises(ApiError, match="berth-pods"):
        own = f"{PODS}/{pod['metadata']['name']}{path}"
        cluster.request("PATCH", own, change, tenant, STRATEGIC)


async def test_a_tenant_binds_no_pod_of_berth(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, tenant: str
) -> None:
    await engine.act(Submit(gang))
    [pod, *_] = pods_of(cluster, gang)
    name = pod["metadata"]["name"]
    binding = binding_manifest(name, pod["metadata"]["uid"], "n1")
    for path in (f"{PODS}/{name}/binding", BINDINGS):
        with pytest.raises(ApiError, match="bound by Berth's executor alone"):
            cluster.request("POST", path, binding, tenant)
    assert "nodeName" not in pods_of(cluster, gang)[0]["spec"]


async def test_a_tenant_binds_no_pod_that_berth_adopted_until_it_is_given_back(
    cluster: KubernetesCluster,
    engine: KubernetesEngine,
    gang: EngineGang,
    tenant: str,
    adopted: list[str],
) -> None:
    def refusal() -> str:
        pod = cluster.request("GET", adopted[0])["metadata"]
        binding = binding_manifest(pod["name"], pod["uid"], "n1")
        try:
            cluster.request("POST", f"{adopted[0]}/binding?dryRun=All", binding, tenant)
        except ApiError as error:
            return str(error)
        return ""

    assert refusal() == "", "a pod that waits is its tenant's"
    await engine.act(Submit(gang))
    await until(lambda: "bound by Berth's executor alone" in refusal())
    await engine.act(Forbid(gang.identity))
    await until(lambda: refusal() == "")


async def test_berth_binds_the_pods_that_it_adopted(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, adopted: list[str]
) -> None:
    await engine.act(Submit(gang))
    name = gang_name(gang.identity)
    await until(
        lambda: sum(pod.identity == gang.identity for pod in engine.pods.items.values()) == 3
    )
    await until(lambda: ("berth", name) in engine.records.items)
    await engine.act(Start(gang, name))
    nodes = [cluster.request("GET", path)["spec"].get("nodeName") for path in adopted]
    assert nodes == [worker.node_id for worker in gang.workers]


def test_a_tenant_does_with_its_own_pods_as_it_likes(
    cluster: KubernetesCluster, tenant: str
) -> None:
    labels = {"berth/group": "g", "app": "own"}
    own = {"metadata": {"name": "own", "labels": labels}, "spec": {"containers": CONTAINERS}}
    made = cluster.request("POST", PODS, own, tenant)
    relabelled = {"metadata": {"labels": {"berth/group": "h"}}}
    cluster.request("PATCH", f"{PODS}/own", relabelled, tenant, MERGE)
    binding = binding_manifest("own", made["metadata"]["uid"], "n1")
    cluster.request("POST", f"{PODS}/own/binding", binding, tenant)
    cluster.request("PATCH", f"{PODS}/own/status", FAILED, tenant, MERGE)
    cluster.request("DELETE", f"{PODS}/own", {"gracePeriodSeconds": 0}, tenant)


async def test_an_administrator_lets_a_pod_of_berth_go(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    await engine.act(Submit(gang))
    for pod in pods_of(cluster, gang):
        path = f"{PODS}/{pod['metadata']['name']}"
        cluster.patch(path, {"metadata": {"finalizers": None}})
        cluster.request("DELETE", path, {"gracePeriodSeconds": 0})
    assert pods_of(cluster, gang) == []
