"""Pods of tenants become workers, each of one gang, and are given back."""

from __future__ import annotations

from typing import Any

import pytest

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.kubernetes.adoption import (
    Unadoptable,
    adoption_change,
    pods_by_rank,
    release_change,
)
from services.executor.core.kubernetes.names import FINALIZER, IDENTITY, JOB, RANK, label_value
from services.executor.core.kubernetes.nodes import Toleration
from services.executor.core.kubernetes.pods import pod_of
from tests.services.executor.core.engines.looks import gang_of, placed_history
from tests.services.executor.core.kubernetes.user_pods import NAMESPACE, uid_of, user_pod, user_row

NAMES = ("a", "b", "c")
TOLERATIONS = (Toleration("nvidia.com/gpu"),)


def gang() -> EngineGang:
    made = gang_of(placed_history())
    for worker, name in zip(made.workers, NAMES, strict=True):
        worker.pod = uid_of(name)
    return made


def adopted(**fields: Any) -> dict[str, Any]:
    return adoption_change(user_pod("a", **fields), gang(), 0, TOLERATIONS)


def test_the_pods_are_those_of_the_ranks_in_the_namespace_of_the_tenant() -> None:
    pods = [user_pod(name) for name in ("c", "a", "b")]
    assert [pod.name for pod in pods_by_rank(gang(), NAMESPACE, pods)] == list(NAMES)
    with pytest.raises(Unadoptable, match="not in namespace berth-bob"):
        pods_by_rank(gang(), "berth-bob", pods)
    with pytest.raises(Unadoptable, match=uid_of("b")):
        pods_by_rank(gang(), NAMESPACE, [user_pod("a"), user_pod("c")])


def test_a_worker_keeps_what_its_user_wrote_and_gets_what_berth_needs() -> None:
    own = {"key": "mine", "operator": "Exists"}
    change = adopted(metadata={"finalizers": ["user/own"]}, tolerations=[own])
    metadata = change["metadata"]
    assert metadata["annotations"] == {IDENTITY: gang().identity, RANK: "0"}
    assert metadata["labels"][JOB] == gang().launch.job_id
    assert metadata["finalizers"] == ["user/own", FINALIZER]
    assert metadata["resourceVersion"] == "7", "it applies to this version alone"
    assert change["spec"]["tolerations"] == [own, {"key": "nvidia.com/gpu", "operator": "Exists"}]


def test_a_worker_gets_a_label_that_kubernetes_takes_whatever_the_id_of_its_job() -> None:
    made = gang()
    for worker in made.workers:
        worker.launch = worker.launch.model_copy(update={"job_id": "a:b"})
    change = adoption_change(user_pod("a"), made, 0, TOLERATIONS)
    assert change["metadata"]["labels"][JOB] == label_value("a:b") != "a:b"


def test_a_pod_that_is_adopted_already_is_left_alone() -> None:
    mine = {IDENTITY: gang().identity, RANK: "0"}
    assert adopted(annotations=mine, node="n1") == {}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"annotations": {IDENTITY: "berth:i:p:0/1/0", RANK: "0"}}, "is of berth:i:p:0/1/0"),
        ({"schedulerName": "other"}, "another scheduler"),
        ({"node": "n2"}, "bound to n2"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "deleted"),
        ({"metadata": {"uid": uid_of("z")}}, "another one"),
    ],
)
def test_no_other_pod_is_adopted(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(Unadoptable, match=words):
        adopted(**fields)


def test_a_pod_is_given_back_as_it_was() -> None:
    mine = {IDENTITY: gang().identity, RANK: "0"}
    row = user_row("a", annotations=mine, metadata={"finalizers": ["user/own", FINALIZER]})
    row["metadata"]["annotations"] = mine
    pod = pod_of(row)
    change = release_change(pod, uid_of("a"))["metadata"]
    assert change["annotations"] == {IDENTITY: None, RANK: None}
    assert (change["finalizers"], change["resourceVersion"]) == (["user/own"], "7")
    assert release_change(pod, uid_of("z")) == {}
    assert release_change(user_pod("a"), uid_of("a")) == {}
