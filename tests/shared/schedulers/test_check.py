from __future__ import annotations

from dataclasses import replace

import pytest

from shared.performance.interleaving import GpuSharing
from shared.schedulers.check import ProposalRefused, check, violations
from shared.schedulers.compose import Groups, Proposal
from shared.schedulers.hooks import Placements
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.view import TypedNode
from tests.shared.schedulers.views import job, nodes_of, on, view

NOW = view(
    [
        job("a", 2),
        job("b", 1, gpu_types=("p",)),
        job("kept", 1, preemptible=False, placement=on("n-v")),
        job("elastic", 2, min_gpus=1, max_gpus=4),
    ],
    nodes_of(v=4, p=2),
    moves=3,
)
KEPT: Placements = {"kept": on("n-v")}


@pytest.mark.parametrize(
    ("placements", "violation"),
    [
        ({"x": on("n-v")}, "job x: must be one of the view"),
        ({"a": on("n-z", 2)}, "node of job a: n-z, must be one of the view"),
        ({"a": (("n-v", 1), ("n-v", 1))}, "nodes of job a: ['n-v', 'n-v'], must differ"),
        ({"a": (("n-v", 2), ("n-p", 0))}, "GPUs of job a on node n-p: 0, must be at least 1"),
        ({"a": (("n-v", 1), ("n-p", 1))}, "GPU types of job a: p, v, must be one"),
        ({"b": on("n-v")}, "GPU type of job b: v, must be one of p"),
        ({"a": on("n-v")}, "GPUs of job a: 1, must be 2 to 2"),
        ({"elastic": on("n-v", 4)}, "GPUs of node n-v: 5, must be at most 4"),
        ({"elastic": on("n-v", 5)}, "GPUs of job elastic: 5, must be 1 to 4"),
    ],
)
def test_what_no_cluster_can_do_is_refused_whole(placements: Placements, violation: str) -> None:
    with pytest.raises(ProposalRefused) as refused:
        check(NOW, Proposal("odd", {**KEPT, **placements}))
    assert str(refused.value) == f"scheduler odd: {violation}"
    assert refused.value.scheduler == "odd"


@pytest.mark.parametrize(
    ("share", "violation"),
    [
        (PerGpu(5_000, 10), "cores of node n1, 1/1000: 10000, must be at most 8000"),
        (PerGpu(1_000, 60), "memory of node n1, MiB: 120, must be at most 100"),
        (PerGpu(-1, 0), "cores and memory of job a: (-1, 0), must be at least 0"),
    ],
)
def test_cores_and_memory_of_a_node_are_given_once(share: PerGpu, violation: str) -> None:
    now = view([job("a", 2)], (TypedNode("n1", "v", 2, "", 0.0, 8_000, 100),))
    proposal = Proposal("odd", {"a": on("n1", 2)}, host_shares={"a": share})
    assert list(violations(now, proposal)) == [violation]


def test_only_jobs_with_gpus_have_cores_and_memory() -> None:
    proposal = Proposal("odd", KEPT, host_shares={"a": PerGpu(1, 1)})
    assert list(violations(NOW, proposal)) == [
        "cores and memory of job a: must be of a job with GPUs"
    ]


@pytest.mark.parametrize(
    ("groups", "placements", "violation"),
    [
        ((("a", "b"),), {"a": on("n-v", 2)}, "job b of a group: holds no GPUs, must hold those"),
        ((("a",),), {"a": on("n-v", 2)}, "jobs on the same GPUs: a, must be 2 to 2"),
        ((("a", "b"), ("a", "c")), {}, "groups of job a: 2, must be one"),
        ((("b", "elastic"),), {"b": on("n-p"), "elastic": on("n-v")}, "GPUs of jobs b, elastic:"),
        ((("elastic", "kept"),), {"elastic": on("n-v")}, "new neighbours of job kept: elas"),
        (
            (("a", "b", "elastic"),),
            dict.fromkeys(("a", "b", "elastic"), on("n-v", 2)),
            "jobs on the same GPUs: a, b, elastic, must be 2 to 2",
        ),
    ],
)
def test_groups_hold_the_same_gpus_and_no_more_jobs_than_may_share(
    groups: Groups, placements: Placements, violation: str
) -> None:
    shared = replace(NOW, sharing=GpuSharing(2))
    broken = list(violations(shared, Proposal("odd", {**KEPT, **placements}, groups=groups)))
    assert any(own.startswith(violation) for own in broken), broken


def test_the_gpus_of_a_group_count_once() -> None:
    two = [job("a", 2), job("b", 2)]
    shared = Proposal("even", dict.fromkeys("ab", on("n-v", 2)), groups=(("a", "b"),))
    check(replace(view(two, nodes_of(v=2)), sharing=GpuSharing(2)), shared)
    assert list(violations(view(two, nodes_of(v=2)), shared)) == [
        "jobs on the same GPUs: a, b, must be alone"
    ]


def test_a_job_that_is_not_preemptible_stays() -> None:
    assert list(violations(NOW, Proposal("odd", {}))) == [
        "change of job kept: stop, must be none, as it is not preemptible"
    ]


def test_a_round_has_so_many_changes_at_most() -> None:
    few = view([job(f"j{number}") for number in range(3)], nodes_of(v=4), moves=2)
    placements = {f"j{number}": on("n-v") for number in range(3)}
    assert list(violations(few, Proposal("odd", placements))) == ["changes: 3, must be at most 2"]


def test_what_keeps_the_rules_passes() -> None:
    check(NOW, Proposal("even", {**KEPT, "a": on("n-v", 2), "b": on("n-p"), "elastic": on("n-v")}))
