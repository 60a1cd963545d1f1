"""The pods of a gang: pinned by no scheduler, with what agents give a worker."""

from __future__ import annotations

from typing import Any

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.manifests import (
    PodOptions,
    binding_manifest,
    grace_seconds,
    literal,
    master_address,
    needs_service,
    owner_reference,
    pod_manifest,
    service_manifest,
)
from services.executor.core.kubernetes.names import gang_name, label_value
from services.executor.core.kubernetes.nodes import Toleration
from tests.services.executor.core.engines.looks import gang_of, placed_history

OPTIONS = PodOptions("train:1", priority_class="batch", tolerations=(Toleration("a", "b"),))


def pod(rank: int = 0, options: PodOptions = OPTIONS, **launch: Any) -> dict[str, Any]:
    gang = gang_of(placed_history())
    worker = gang.workers[rank]
    worker.launch = worker.launch.model_copy(update=launch)
    owner = owner_reference("first", "u1") if rank else None
    return pod_manifest(gang, worker, "ns", options, owner)


def variables(made: dict[str, Any]) -> dict[str, str]:
    return {pair["name"]: pair["value"] for pair in made["spec"]["containers"][0]["env"]}


def test_a_pod_waits_for_its_binding_and_is_never_started_again() -> None:
    made = pod()
    spec = made["spec"]
    assert (spec["schedulerName"], spec["restartPolicy"]) == ("berth", "Never")
    assert "nodeName" not in spec and not spec["automountServiceAccountToken"]
    assert made["metadata"]["finalizers"] == ["berth/reported"]
    assert spec["priorityClassName"] == "batch"
    assert {"key": "a", "operator": "Equal", "value": "b"} in spec["tolerations"]


def test_the_pod_of_rank_0_owns_the_others() -> None:
    assert "ownerReferences" not in pod(0)["metadata"]
    assert pod(1)["metadata"]["ownerReferences"][0]["uid"] == "u1"


def test_a_worker_gets_its_gpus_and_its_place() -> None:
    made = pod(1)
    resources = made["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": "1", "memory": "16384Mi"}
    assert resources["requests"] == {"cpu": "4000m", "memory": "16384Mi"}
    known = variables(made)
    assert (known["RANK"], known["WORLD_SIZE"], known["BERTH_NODE_ID"]) == ("1", "3", "n1")
    assert known["A"] == "1" and "PATH" not in known, "that of the image"


def test_every_pod_has_limits_of_memory_and_disk_and_requests_what_berth_counts() -> None:
    made = pod(mem_gib=0, options=PodOptions("x", disk_gib=2))["spec"]
    resources = made["containers"][0]["resources"]
    assert resources["limits"] == {
        "memory": "1024Mi",
        "ephemeral-storage": "2048Mi",
        "nvidia.com/gpu": "1",
    }
    assert resources["requests"] == {"memory": "0", "ephemeral-storage": "0"}
    assert made["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "1024Mi"}
    assert pod(mem_gib=0.5)["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] == "512Mi"
    assert made["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


def test_a_job_id_that_is_no_label_is_in_an_annotation() -> None:
    for job_id in ("j", "a" * 64, "a:b"):
        metadata = pod(job_id=job_id)["metadata"]
        assert metadata["annotations"]["berth/job"] == job_id
        assert metadata["labels"]["berth/job"] == label_value(job_id)


def test_a_job_names_no_gpus_of_others() -> None:
    named = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "all"}
    assert not named.keys() & variables(pod(env=named)).keys()
    assert variables(pod(env=named, gpus=()))["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_workers_meet_at_the_first_one_by_name_or_by_the_address_of_its_node() -> None:
    gang: EngineGang = gang_of(placed_history())
    name = gang_name(gang.identity)
    assert variables(pod(1))["MASTER_ADDR"] == f"{name}-0.{name}.ns.svc"
    made = pod(1)["spec"]
    assert (made["hostname"], made["subdomain"]) == (f"{name}-1", name)
    host = PodOptions("x", "host")
    assert master_address(gang, "ns", host) == gang.launch.master_addr
    assert not needs_service(gang, host) and needs_service(gang, OPTIONS)
    service = service_manifest(gang, owner_reference("p", "u"))
    assert service["spec"]["selector"] == {"berth/gang": name}
    assert service["spec"]["clusterIP"] == "None"
    assert variables(pod(1))["MASTER_PORT"] == variables(pod(2))["MASTER_PORT"]


def test_what_kubernetes_would_replace_is_passed_on_as_it_is() -> None:
    made = pod(command=("sh", "-c", "echo $(HOME) $RANK"), env={"X": "$(Y)"})
    assert made["spec"]["containers"][0]["command"][-1] == "echo $$(HOME) $$RANK"
    assert variables(made)["X"] == literal("$(Y)") == "$$(Y)"


def test_limits_of_time_are_whole_seconds_and_never_none() -> None:
    assert (grace_seconds(0), grace_seconds(1.2)) == (1, 2)
    assert pod(walltime_s=0.4)["spec"]["activeDeadlineSeconds"] == 1
    assert "activeDeadlineSeconds" not in pod()["spec"]


def test_a_job_may_name_image_and_folder() -> None:
    container = pod(image="own:2", workdir="/data")["spec"]["containers"][0]
    assert (container["image"], container["workingDir"]) == ("own:2", "/data")
    assert pod()["spec"]["containers"][0]["image"] == "train:1"


def test_a_binding_is_of_one_pod_and_of_no_later_one_of_its_name() -> None:
    made = binding_manifest("p", "u", "n1")
    assert made["metadata"] == {"name": "p", "uid": "u"} and made["target"]["name"] == "n1"
