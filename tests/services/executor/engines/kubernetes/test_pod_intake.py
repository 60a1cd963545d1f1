"""Pods that users create become jobs: on real kubelets, with the controller of Jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from infra.kubernetes.cluster import KubernetesCluster
from infra.kubernetes.control_plane import EXECUTOR, MANIFESTS, ApiError
from shared.contracts.attempts import JobCancelled, JobPreempted, JobSucceeded
from shared.contracts.placement import JobHeld
from shared.contracts.reports import WorkerReady
from tests.real_clusters import kubernetes_cluster
from tests.services.executor.engines.kubernetes.pod_stage import PodStage

pytestmark = [pytest.mark.process, pytest.mark.parts]
LONG = "echo ran; sleep 300"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubernetesCluster]:
    with kubernetes_cluster() as running:
        running.apply((MANIFESTS / "executor.yaml").read_text())
        running.apply((MANIFESTS / "admission.yaml").read_text())
        yield running


@pytest.fixture
async def stage(cluster: KubernetesCluster, tmp_path: Path) -> AsyncIterator[PodStage]:
    made = PodStage(tmp_path, cluster)
    await made.serving()
    yield made
    await made.clean()


async def test_a_gang_of_pods_is_submitted_once_all_are_there_and_runs_once(
    stage: PodStage,
) -> None:
    stage.create(stage.gang_pod("a-0", "train", 2, "echo ran; exit 0"))
    await stage.until(lambda: stage.message("a-0") == "1 of 2 pods of group train are there")
    assert stage.submitted() == {}
    # A rank that fails first would have the other one stopped, which is to delete its pod.
    stage.create(stage.gang_pod("a-1", "train", 2, "echo ran; exit 0"))
    job_id, spec = await stage.job()
    assert spec.pods == tuple(stage.user_pod(f"a-{n}")["metadata"]["uid"] for n in (0, 1))
    assert (spec.name, spec.gang.workers, spec.gang.gpus_per_worker) == ("train", 2, 1)
    place = await stage.begin(job_id, spec, ("g2", [0]), ("g1", [0]))
    ends = await stage.exits(2)
    assert {rank: ends[f"{place}/{rank}"].exit_code for rank in (0, 1)} == {0: 0, 1: 0}
    for rank, node in enumerate(("g2", "g1")):
        pod = stage.user_pod(f"a-{rank}")
        assert pod["spec"]["nodeName"] == node
        assert pod["metadata"]["labels"]["berth/job"] == job_id
        stage.release(job_id, place, rank, node)
    stage.write(JobSucceeded(job_id=job_id, tenant="ada", attempt=1))
    await stage.until(lambda: "finalizers" not in stage.user_pod("a-0")["metadata"])
    assert stage.phase("a-0") == "Succeeded", "the pod is its user's, and stays"
    assert len(stage.submitted()) == 1 and not stage.cancelled()


async def test_a_job_of_kubernetes_completes(stage: PodStage) -> None:
    stage.create_job("sweep", 2, "echo rank $JOB_COMPLETION_INDEX; exit 0")
    job_id, spec = await stage.job()
    place = await stage.begin(job_id, spec, ("g1", [0]), ("g1", [1]))
    await stage.exits(2)
    await stage.until(lambda: stage.printed(1) == ["rank 1"])
    for rank in (0, 1):
        stage.release(job_id, place, rank, "g1")
    stage.write(JobSucceeded(job_id=job_id, tenant="ada", attempt=1))
    await stage.until(lambda: stage.job_status("sweep").get("succeeded") == 2)


async def test_the_jobs_of_a_jobset_are_one_gang_in_the_order_of_their_pods(
    stage: PodStage,
) -> None:
    stage.create_jobset("llm", 2, 2, LONG)
    job_id, spec = await stage.job()
    assert (spec.name, spec.gang.workers) == ("llm", 4)
    names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in stage.user_pods()}
    ranks = [names[uid].rpartition("-")[0] for uid in spec.pods or ()]
    assert ranks == [f"llm-workers-{job}-{index}" for job in (0, 1) for index in (0, 1)]
    await stage.begin(job_id, spec, ("g1", [0]), ("g1", [1]), ("g2", [0]), ("g2", [1]))
    await stage.until(lambda: len(stage.running()) == 4)


async def test_the_replicas_of_a_pytorchjob_are_a_gang_of_as_many_as_torchrun_is_given(
    stage: PodStage,
) -> None:
    stage.create(stage.replica("bert", "worker", 0, 2, LONG))
    waiting = "1 of 2 pods of group bert are there"
    await stage.until(lambda: stage.message("bert-worker-0") == waiting)
    stage.create(stage.replica("bert", "master", 0, 2, LONG))
    job_id, spec = await stage.job()
    master, worker = (stage.user_pod(f"bert-{kind}-0") for kind in ("master", "worker"))
    assert spec.pods == (master["metadata"]["uid"], worker["metadata"]["uid"])
    await stage.begin(job_id, spec, ("g1", [0]), ("g2", [0]))
    await stage.until(lambda: len(stage.running()) == 2)


async def test_an_executor_that_is_killed_submits_nothing_twice_and_starts_nothing_twice(
    stage: PodStage,
) -> None:
    stage.create(stage.gang_pod("a-0", "train", 2, LONG), stage.gang_pod("a-1", "train", 2, LONG))
    job_id, spec = await stage.job()
    await stage.crash()
    stage.start()
    place = stage.place(job_id, spec, ("g1", [0]), ("g2", [0]))
    await stage.wait_for(WorkerReady, 2)
    await stage.crash()
    stage.start()
    await stage.begin_placed(job_id)
    await stage.until(lambda: all(stage.phase(f"a-{n}") == "Running" for n in (0, 1)))
    await stage.crash()
    stage.start()
    await stage.until(lambda: "ran" in stage.log_of("a-0"))
    assert stage.log_of("a-0").split().count("ran") == 1
    stage.request_stop(job_id)
    assert len(await stage.stops(2)) == 2
    assert set(stage.submitted()) == {job_id}
    for rank, node in enumerate(("g1", "g2")):
        stage.release(job_id, place, rank, node)


async def test_pods_say_why_they_wait_and_an_event_is_written_at_each_change(
    stage: PodStage,
) -> None:
    stage.create(stage.pod("alone", LONG))
    job_id, spec = await stage.job()
    stage.enqueue(job_id, spec)
    stage.write(JobHeld(job_id=job_id, tenant="ada", reason="no_capacity", short_gpus=1))
    text = f"job {job_id} of Berth: too few GPUs are free; short gpus 1"
    await stage.until(lambda: stage.message("alone") == text)
    await stage.until(lambda: stage.events("alone")[-1:] == [text])
    assert len(stage.events("alone")) == len(set(stage.events("alone")))
    version = stage.user_pod("alone")["metadata"]["resourceVersion"]
    await stage.crash()
    stage.start()
    stage.create(stage.pod("later", LONG))
    await stage.job(2)
    assert stage.user_pod("alone")["metadata"]["resourceVersion"] == version


async def test_a_pod_that_its_user_deletes_cancels_the_job(stage: PodStage) -> None:
    stage.create(stage.gang_pod("a-0", "train", 2, LONG), stage.gang_pod("a-1", "train", 2, LONG))
    job_id, spec = await stage.job()
    stage.enqueue(job_id, spec)
    stage.delete("a-0")
    await stage.until(lambda: stage.cancelled() == {job_id})
    stage.write(JobCancelled(job_id=job_id, tenant="ada"))
    stage.create(stage.gang_pod("a-2", "train", 2, LONG))
    second, spec = await stage.job(2)
    await stage.begin(second, spec, ("g1", [0]), ("g2", [0]))
    await stage.until(lambda: stage.phase("a-2") == "Running")
    stage.delete("a-1")
    await stage.until(lambda: stage.cancelled() == {job_id, second})


async def test_pods_of_a_preempted_job_are_made_anew_and_are_another_job(stage: PodStage) -> None:
    stage.create_job("long", 2, LONG)
    job_id, spec = await stage.job()
    place = await stage.begin(job_id, spec, ("g1", [0]), ("g2", [0]))
    await stage.until(lambda: len(stage.running()) == 2)
    first = stage.running()
    stage.write(JobPreempted(job_id=job_id, tenant="ada", attempt=1, reason="higher_class"))
    assert len(await stage.stops(2)) == 2
    for rank, node in enumerate(("g1", "g2")):
        stage.release(job_id, place, rank, node)
    await stage.until(lambda: job_id in stage.cancelled())
    stage.write(JobCancelled(job_id=job_id, tenant="ada"))
    second, spec = await stage.job(2)
    assert second != job_id and not set(spec.pods or ()) & first


async def test_pods_of_a_job_that_does_not_start_wait_again(stage: PodStage) -> None:
    stage.create(stage.pod("alone", LONG))
    job_id, spec = await stage.job()
    place = stage.place(job_id, spec, ("g1", [0]))
    await stage.wait_for(WorkerReady)
    assert "finalizers" in stage.user_pod("alone")["metadata"]
    stage.request_stop(job_id)
    await stage.stops(1)
    pod = stage.user_pod("alone")
    assert "finalizers" not in pod["metadata"] and "nodeName" not in pod["spec"]
    assert "berth/identity" not in pod["metadata"].get("annotations", {})
    stage.release(job_id, place, 0, "g1")
    stage.write(JobCancelled(job_id=job_id, tenant="ada"))
    text = f"job {job_id} of Berth: it was cancelled; delete the pods"
    await stage.until(lambda: stage.message("alone") == text)
    assert len(stage.submitted()) == 1


async def test_pods_of_another_namespace_are_no_workers_of_a_tenant(stage: PodStage) -> None:
    stage.create(stage.pod("alone", LONG))
    job_id, spec = await stage.job()
    other = stage.stranger()
    stolen = spec.model_copy(update={"pods": (other["metadata"]["uid"],)})
    stage.place("j-other", stolen, ("g1", [0]))
    [refused] = await stage.refusals(1)
    assert (refused.reason, refused.permanent) == ("engine_cancelled", True)
    assert "berth/identity" not in stage.stranger()["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("method", "path"),
    [("PATCH", "pods/{}"), ("DELETE", "events"), ("GET", "events"), ("PATCH", "nodes/{}/status")],
)
def test_the_rights_on_status_and_events_are_no_more_than_these(
    cluster: KubernetesCluster, method: str, path: str
) -> None:
    where = "/api/v1/" if path.startswith("nodes") else "/api/v1/namespaces/default/"
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(ApiError) as refused:
        cluster.request(method, where + path.format("g1"), {}, EXECUTOR, kind)
    assert refused.value.status == 403
