"""Orders that come late, and objects of others under names of a gang, on a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import EXECUTOR, ApiError
from infra.kubernetes.image import IMAGE
from services.executor.core.engines.contract import EnginePhase, Forbid, Forget, Kill, Start, Submit
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.manifests import binding_manifest
from services.executor.core.kubernetes.names import GANG, gang_name, pod_name
from services.executor.core.kubernetes.pods import PodSeen
from services.executor.engines.kubernetes.kubernetes import KubernetesEngine
from tests.patience import PATIENCE_S, until
from tests.services.executor.engines.kubernetes.real_api import PODS, RECORDS, pods_of, seen

pytestmark = [pytest.mark.process, pytest.mark.parts]


def record_of(cluster: KubernetesCluster, gang: EngineGang) -> Any:
    try:
        return cluster.request("GET", f"{RECORDS}/{gang_name(gang.identity)}")
    except ApiError as error:
        assert error.status == 404
        return None


def is_bound_to_nodes(engine: KubernetesEngine, gang: EngineGang) -> bool:
    pods = engine.pods.items.values()
    return all(pod.node for pod in pods if pod.name.startswith(gang_name(gang.identity)))


async def ended(engine: KubernetesEngine, gang: EngineGang) -> None:
    """Kill what there is of a gang, as leftovers are killed, until the engine shows its end."""
    async with asyncio.timeout(PATIENCE_S):
        while jobs := (await engine.observe([gang.identity])).jobs_of(gang.identity):
            if jobs[0].phase is EnginePhase.ENDED:
                await engine.act(Forget(jobs[0].ref))
            else:
                await engine.act(Kill(jobs[0].ref))
            await asyncio.sleep(0.05)


async def test_a_submit_that_comes_after_the_forbidding_creates_no_pod(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    await engine.act(Forbid(gang.identity))
    assert await engine.act(Submit(gang)) is None
    assert pods_of(cluster, gang) == []
    assert record_of(cluster, gang)["spec"]["holderIdentity"] == "forbidden"


async def test_a_late_submit_of_a_gang_that_ran_creates_no_pod(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    await engine.act(Start(gang, gang_name(gang.identity)))
    uids = {pod["metadata"]["uid"] for pod in pods_of(cluster, gang)}
    [first, *_] = pods_of(cluster, gang)
    path = f"{PODS}/{first['metadata']['name']}"
    cluster.patch(path, {"metadata": {"finalizers": None}})
    cluster.request("DELETE", path, {"gracePeriodSeconds": 0})
    await engine.act(Submit(gang))
    assert {pod["metadata"]["uid"] for pod in pods_of(cluster, gang)} < uids


async def test_a_gang_that_was_left_open_is_forbidden_and_leaves_nothing(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    await engine.act(Kill(gang_name(gang.identity)))
    assert record_of(cluster, gang)["spec"]["holderIdentity"] == "forbidden"
    assert pods_of(cluster, gang) == []
    await ended(engine, gang)
    assert record_of(cluster, gang) is None


@pytest.mark.parametrize("is_bound", [False, True])
async def test_pods_without_a_record_are_shown_and_end(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, is_bound: bool
) -> None:
    name = gang_name(gang.identity)
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    if is_bound:
        await engine.act(Start(gang, name))
    cluster.request("DELETE", f"{RECORDS}/{name}")
    await until(lambda: ("berth", name) not in engine.records.items)
    await until(lambda: is_bound == is_bound_to_nodes(engine, gang))
    [job] = (await engine.observe([gang.identity])).jobs_of(gang.identity)
    assert job.is_partial, "a gang that the ledger has is submitted again"
    assert job.gpu_counts == ({"n1": 2, "n2": 1} if is_bound else {})
    await engine.act(Kill(name))
    deleted = [pod["metadata"].get("deletionTimestamp") for pod in pods_of(cluster, gang)]
    assert (len(deleted), all(deleted)) == (3 if is_bound else 0, True), "a kubelet ends its own"
    for pod in pods_of(cluster, gang):
        cluster.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"phase": "Failed"}})
    await ended(engine, gang)
    assert pods_of(cluster, gang) == []


async def test_a_gang_goes_on_after_its_record_was_removed(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    name = gang_name(gang.identity)
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    await engine.act(Start(gang, name))
    cluster.request("DELETE", f"{RECORDS}/{name}")
    await until(lambda: ("berth", name) not in engine.records.items)
    await until(lambda: is_bound_to_nodes(engine, gang))
    await engine.act(Submit(gang))
    assert record_of(cluster, gang)["spec"]["holderIdentity"] == "started", "its pods were bound"
    assert await seen(engine, gang, 3) is EnginePhase.RUNNING
    assert (await engine.observe([gang.identity])).progress[gang.identity].is_begun


async def test_a_change_of_a_record_that_is_removed_makes_no_new_one(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    name = gang_name(gang.identity)
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    await until(lambda: ("berth", name) in engine.records.items)
    late = dict(engine.records.items)
    cluster.request("DELETE", f"{RECORDS}/{name}")
    await until(lambda: ("berth", name) not in engine.records.items)
    engine.records.items.update(late)
    await engine.act(Start(gang, name))
    assert record_of(cluster, gang) is None
    assert not any(pod["spec"].get("nodeName") for pod in pods_of(cluster, gang))


async def test_a_gang_of_which_another_scheduler_bound_a_pod_binds_no_other_and_is_refused(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, adopted: list[str]
) -> None:
    name = gang_name(gang.identity)
    await engine.act(Submit(gang))
    row = cluster.request("GET", adopted[0])["metadata"]
    binding = binding_manifest(row["name"], row["uid"], "elsewhere")
    cluster.request("POST", f"{adopted[0]}/binding", binding, EXECUTOR)

    def pods() -> list[PodSeen]:
        return [pod for pod in engine.pods.items.values() if pod.identity == gang.identity]

    await until(lambda: sorted(pod.node for pod in pods()) == ["", "", "elsewhere"])
    await until(lambda: ("berth", name) in engine.records.items)
    await engine.act(Start(gang, name))
    assert record_of(cluster, gang)["spec"]["holderIdentity"] == "started"
    assert [cluster.request("GET", path)["spec"].get("nodeName") for path in adopted[1:]] == [
        None
    ] * 2
    await until(lambda: engine.records.items["berth", name].decided == "started")
    [job] = (await engine.observe([gang.identity])).jobs_of(gang.identity)
    assert job.is_refused and "bound to node elsewhere by another" in job.waits_for


@pytest.mark.parametrize("rank", [0, 1])
async def test_a_pod_of_another_under_the_name_of_a_worker_refuses_the_gang(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang, rank: int
) -> None:
    name = gang_name(gang.identity)
    other = {
        "metadata": {"name": pod_name(name, rank)},
        "spec": {"schedulerName": "berth", "containers": [{"name": "worker", "image": IMAGE}]},
    }
    cluster.request("POST", PODS, other)
    failure = await engine.act(Submit(gang))
    assert failure is not None and (failure.reason, failure.permanent) == ("engine_refused", False)
    assert "none of Berth's" in failure.detail
    owned = [pod for pod in pods_of(cluster, gang) if "ownerReferences" in pod["metadata"]]
    assert bool(owned) == bool(rank), "a pod of others owns nothing of a gang"


async def test_a_gang_that_runs_is_known_by_the_uids_in_its_record(
    cluster: KubernetesCluster, engine: KubernetesEngine, gang: EngineGang
) -> None:
    """Without `admission.yaml` a tenant may change what a pod carries, and replace it."""
    name = gang_name(gang.identity)
    await engine.act(Submit(gang))
    await seen(engine, gang, 3)
    await engine.act(Start(gang, name))
    first, second, _ = (f"{PODS}/{pod['metadata']['name']}" for pod in pods_of(cluster, gang))
    bare = {"metadata": {"annotations": None, "labels": {GANG: None}}}
    cluster.request("PATCH", first, bare, EXECUTOR, "application/merge-patch+json")
    await until(lambda: engine.pods.items["berth-vision", f"{name}-0"].identity == "")
    assert await seen(engine, gang, 3) is EnginePhase.RUNNING
    [job] = (await engine.observe([gang.identity])).jobs_of(gang.identity)
    assert not job.has_failed and job.gpu_counts == {"n1": 2, "n2": 1}
    row = cluster.request("GET", second)
    cluster.patch(second, {"metadata": {"finalizers": None}})
    cluster.request("DELETE", second, {"gracePeriodSeconds": 0})
    copied = {key: row["metadata"][key] for key in ("name", "annotations", "labels")}
    cluster.request("POST", PODS, {"metadata": copied, "spec": row["spec"]}, EXECUTOR)
    uid = row["metadata"]["uid"]
    await until(lambda: engine.pods.items["berth-vision", f"{name}-1"].uid != uid)
    [job] = (await engine.observe([gang.identity])).jobs_of(gang.identity)
    assert job.has_failed, "its pod is gone"
