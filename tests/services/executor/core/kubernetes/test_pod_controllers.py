"""Pods of a JobSet or a PyTorchJob are a gang by the labels of their controller."""

from __future__ import annotations

import pytest

from services.executor.core.kubernetes.pod_groups import FreePod, PodGroup, groups_of
from services.executor.core.kubernetes.pods import PodSeen
from tests.services.executor.core.kubernetes.controller_pods import (
    jobset_labels,
    torchrun,
    training_labels,
)
from tests.services.executor.core.kubernetes.user_pods import user_pod


def groups(*pods: PodSeen) -> list[PodGroup]:
    return list(groups_of(FreePod(pod, pod.request) for pod in pods if pod.request is not None))


def names(group: PodGroup) -> list[str]:
    return [pod.name for pod in group.pods]


def test_the_pods_of_all_jobs_of_a_jobset_are_a_gang_in_the_order_of_jobs_and_indices() -> None:
    places = {"d": (1, 1), "c": (1, 0), "b": (0, 1), "a": (0, 0)}
    pods = [user_pod(n, size=4, labels=jobset_labels("llm", *at)) for n, at in places.items()]
    [group] = groups(*pods)
    assert (group.name, group.is_whole, group.fault) == ("llm", True, "")
    assert names(group) == ["a", "b", "c", "d"]


def test_a_jobset_that_is_restarted_is_another_gang() -> None:
    first = user_pod("a", size=2, labels=jobset_labels("llm", 0, 0))
    second = [user_pod(n, size=2, labels=jobset_labels("llm", 0, i, 1)) for i, n in enumerate("bc")]
    old, new = groups(first, *second)
    assert (old.is_whole, new.is_whole, new.name) == (False, True, "llm-1")


def test_the_master_of_a_pytorchjob_has_rank_0_and_its_workers_follow() -> None:
    pods = [
        user_pod(name, size=3, labels=training_labels("bert", kind, index))
        for name, kind, index in (("a", "worker", 1), ("b", "Worker", 0), ("c", "master", 0))
    ]
    [group] = groups(*pods)
    assert (group.name, names(group)) == ("bert", ["c", "b", "a"])


def test_the_number_of_nodes_of_torchrun_is_the_size_where_no_annotation_has_it() -> None:
    labels = [jobset_labels("llm", 0, index) for index in (0, 1)]
    pods = [user_pod(n, labels=labels[i], containers=torchrun("2")) for i, n in enumerate("ab")]
    [group] = groups(*pods)
    assert (group.size, group.is_whole) == (2, True)
    [own] = groups(user_pod("a", size=3, labels=labels[0], containers=torchrun("2")))
    assert own.size == 3


@pytest.mark.parametrize("nodes", ["1:4", "", "x", "0"])
def test_pods_of_a_controller_without_a_number_are_jobs_of_their_own(nodes: str) -> None:
    pods = [
        user_pod(name, labels=jobset_labels("llm", 0, 0), containers=torchrun(nodes))
        for name in "ab"
    ]
    assert [names(group) for group in groups(*pods)] == [["a"], ["b"]]


def test_too_many_nodes_of_torchrun_are_refused_as_an_annotation_is() -> None:
    [group] = groups(user_pod(labels=jobset_labels("llm", 0, 0), containers=torchrun("513")))
    assert "from 1 to 512" in group.fault


def test_a_group_of_berth_is_before_that_of_a_controller_and_variables_need_one() -> None:
    own = user_pod("a", group="g", size=2, labels=jobset_labels("llm", 0, 0))
    other = user_pod("b", size=2, labels=jobset_labels("g", 0, 1))
    assert [(group.name, group.is_whole) for group in groups(own, other)] == [
        ("g", False),
        ("g", False),
    ]
    [alone] = groups(user_pod(containers=torchrun("2")))
    assert alone.size == 1


def test_a_label_that_is_no_number_counts_as_0() -> None:
    labels = training_labels("bert", "worker", 0) | {
        "training.kubeflow.org/replica-index": "\u0661"
    }
    [group] = groups(user_pod(size=2, labels=labels))
    assert group.members[0].request.index == (1, 0)
