"""Pods of the API: resources, ends, and who ended them."""

from __future__ import annotations

from typing import Any

from services.executor.core.kubernetes.pods import pod_of
from tests.services.executor.core.kubernetes.objects import gang_pod, pod_row, terminated


def test_a_pod_holds_the_sum_of_its_containers_or_what_begins_it() -> None:
    row = pod_row(gpus=2)
    limits = {"nvidia.com/gpu": "3", "memory": "1Gi"}
    row["spec"]["containers"].append({"name": "b", "resources": {"requests": limits}})
    row["spec"]["initContainers"] = [{"name": "i", "resources": {"limits": {"cpu": "4"}}}]
    pod = pod_of(row)
    assert (pod.gpus, pod.cpus, pod.mem_gib) == (5, 4, 1)


def test_sidecars_run_beside_the_containers_and_those_that_begin_later() -> None:
    def begins(cpus: int, **more: str) -> dict[str, Any]:
        return {"name": "i", "resources": {"requests": {"cpu": str(cpus)}}, **more}

    row = pod_row(gpus=0)
    row["spec"]["initContainers"] = [
        begins(6),
        begins(2, restartPolicy="Always"),
        begins(1),
        begins(3, restartPolicy="Always"),
    ]
    assert pod_of(row).cpus == 6, "the first one, which is alone"
    row["spec"]["initContainers"].append(begins(4))
    assert pod_of(row).cpus == 9, "the last one, with both sidecars"
    row["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "7"}}
    assert pod_of(row).cpus == 12
    row["spec"]["overhead"] = {"cpu": "500m", "memory": "1Gi"}
    assert (pod_of(row).cpus, pod_of(row).mem_gib) == (12.5, 1)
    row["spec"]["resources"] = {"requests": {"cpu": "10"}}
    assert pod_of(row).cpus == 10.5, "of the pod as a whole"


def test_a_pod_without_a_rank_is_not_one_of_berth() -> None:
    forged = pod_row(metadata={"annotations": {"berth/identity": "berth:i:p:0/1/0"}})
    assert pod_of(forged).identity == ""
    assert gang_pod(1).identity and gang_pod(1).rank == 1


def test_no_rank_that_anybody_writes_breaks_the_list_of_pods() -> None:
    for rank in ("1" * 5000, "x", "-1", "\u0661"):
        named = {"berth/identity": "berth:i:p:0/1/0", "berth/rank": rank}
        assert pod_of(pod_row(metadata={"annotations": named})).identity == ""


def test_an_end_has_code_and_times() -> None:
    pod = gang_pod(phase="Failed", state=terminated(3))
    assert pod.is_over and pod.end is not None
    assert (pod.end.exit_code, pod.end.finished_ms - pod.end.started_ms) == (3, 7000)


def test_a_pod_that_is_deleted_before_it_is_bound_never_runs() -> None:
    assert gang_pod(node="", phase="Pending", deleted=True).is_over
    assert not gang_pod(phase="Pending", deleted=True).is_over, "its kubelet ends it"


def test_a_pod_that_the_control_plane_ended_is_lost_unless_its_kubelet_confirmed_it() -> None:
    condition = {"type": "DisruptionTarget", "reason": "DeletionByPodGC"}
    lost = gang_pod(phase="Failed", conditions=[condition])
    assert lost.is_lost
    assert not gang_pod(phase="Failed", conditions=[condition], state=terminated(1)).is_lost
    assert not gang_pod(phase="Failed", reason="OutOfcpu").is_lost, "a kubelet did not take it"


def test_what_a_container_waits_for_has_reason_and_details() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    assert gang_pod(state=waiting).waits_for == "ImagePullBackOff: no such image"


def test_the_container_of_a_users_pod_is_its_default_or_first_one() -> None:
    row = pod_row()
    row["spec"]["containers"] = [{"name": "a"}, {"name": "b"}]
    assert pod_of(row).container == "a"
    row["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "b"}
    assert pod_of(row).container == "b"
    assert gang_pod(0).container == "worker"


def test_of_a_users_pod_that_failed_the_container_that_failed_counts() -> None:
    states = {"a": terminated(0), "init": terminated(5)}
    row = pod_row(phase="Failed", containerStatuses=[{"name": "a", "state": states["a"]}])
    row["status"]["initContainerStatuses"] = [{"name": "init", "state": states["init"]}]
    row["spec"]["containers"] = [{"name": "a"}]
    end = pod_of(row).end
    assert end is not None and end.exit_code == 5
