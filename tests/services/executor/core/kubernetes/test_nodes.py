"""Nodes of the API: their GPUs, what keeps new work off, and who is heard."""

from __future__ import annotations

from typing import Any

import pytest

from services.executor.core.kubernetes.nodes import (
    NodeTable,
    Toleration,
    is_served,
    node_of,
    parse_tolerations,
)
from services.executor.core.kubernetes.pods import pod_of
from tests.services.executor.core.kubernetes.objects import pod_row

TOLERATED = (Toleration("nvidia.com/gpu"),)


def row(ready: str = "True", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n1", "labels": labels or {}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"},
            "addresses": [
                {"type": "Hostname", "address": "n1"},
                {"type": "InternalIP", "address": "10.0.0.7"},
            ],
            "conditions": [{"type": "Ready", "status": ready}],
            "nodeInfo": {"bootID": "b"},
        },
    }


def test_a_node_has_what_it_may_allocate() -> None:
    node = node_of(row(labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB"}), TOLERATED, ())
    assert (node.gpus, node.gpu_type, node.cpus, node.mem_gib) == (8, "nvidia-h100-80gb", 64, 512)
    assert (node.address, node.boot_id, node.responds, node.drained) == ("10.0.0.7", "b", True, "")
    assert node.labels == {"berth.images": "yes"}


def test_a_node_without_gpus_is_one_of_cpus() -> None:
    bare = row()
    del bare["status"]["allocatable"]["nvidia.com/gpu"]
    assert (node_of(bare, (), ()).gpus, node_of(bare, (), ()).gpu_type) == (0, "cpu")


def test_what_runs_on_every_node_takes_cores_of_it() -> None:
    owner = {"ownerReferences": [{"kind": "DaemonSet"}]}
    daemon = pod_of(pod_row(gpus=0, metadata=owner))
    assert daemon.is_daemon and node_of(row(), (), [daemon]).cpus == 63.5


def test_a_table_describes_a_node_again_once_it_or_a_daemon_of_it_changed() -> None:
    table, first = NodeTable(()), row()
    before = table.of([first], [])
    assert table.of([first], [pod_of(pod_row())])["n1"] is before["n1"]
    daemon = pod_of(pod_row(gpus=0, metadata={"ownerReferences": [{"kind": "DaemonSet"}]}))
    assert table.of([first], [daemon])["n1"].cpus == 63.5
    assert table.of([first], [])["n1"] == before["n1"]
    assert table.of([row("False")], [])["n1"].responds is False
    unserved = {"metadata": {"name": "no name"}}
    assert table.of([unserved], []) == {}, "one that is gone or not served is left out"


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_is_not_ready_is_not_heard(ready: str) -> None:
    assert not node_of(row(ready), (), ()).responds


@pytest.mark.parametrize(
    ("spec", "drained"),
    [
        ({"unschedulable": True}, "Kubernetes: cordoned"),
        ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, ""),
        (
            {"taints": [{"key": "team", "value": "b", "effect": "NoSchedule"}]},
            "Kubernetes: taint team=b:NoSchedule",
        ),
        ({"taints": [{"key": "soft", "effect": "PreferNoSchedule"}]}, ""),
        ({"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}, ""),
    ],
)
def test_a_cordon_or_a_taint_that_is_not_tolerated_keeps_new_work_off(
    spec: dict[str, Any], drained: str
) -> None:
    assert node_of(row(**spec), TOLERATED, ()).drained == drained


def test_tolerations_are_those_of_the_setting() -> None:
    assert parse_tolerations("a,b=c:NoExecute") == (
        Toleration("a"),
        Toleration("b", "c", "NoExecute"),
    )
    assert Toleration("b", "c").tolerates({"key": "b", "value": "c", "effect": "NoSchedule"})
    assert not Toleration("b", "c").tolerates({"key": "b", "value": "d"})


def test_a_node_with_a_name_that_berth_cannot_write_is_not_served() -> None:
    assert is_served(row()) and not is_served({"metadata": {"name": "x" * 300}})
