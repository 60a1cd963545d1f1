from __future__ import annotations

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.instance import (
    FreeNode,
    GangRequest,
    Instance,
    NodeClass,
    RoundPlan,
    VictimShare,
)
from services.placement.core.solver.places import (
    bins_of,
    gpus_of,
    layout,
    whole_gpus,
    workers_later,
    workers_now,
)


def node_class(nodes: int = 1, **more: object) -> NodeClass:
    members = tuple(FreeNode(f"n{n:02}", (GPU, 0, 500, GPU)) for n in range(nodes))
    made = {"gpus": 4, "whole": 2, "partial": (500,), "cpu_milli": 8000, "mem_mib": 8192}
    return NodeClass(**{**made, "rack": 0, "nodes": members, **more})  # type: ignore[arg-type]


def request(gpus: int, milli: int = GPU, most: int = 9, cpu_milli: int = 0) -> GangRequest:
    return GangRequest("j", 1, gpus, milli, cpu_milli, 0, 1, most, (0,), (GPU,), 0, 1)


def test_workers_are_bounded_by_gpus_cores_and_what_the_job_can_use() -> None:
    assert workers_now(node_class(), request(1)) == 2
    assert workers_now(node_class(), request(1, most=1)) == 1
    assert workers_now(node_class(), request(1, cpu_milli=5000)) == 1
    assert workers_now(node_class(), request(1, milli=250)) == 9


def test_victims_give_back_what_they_hold() -> None:
    held = node_class(victim_shares=(VictimShare(0, 2, 1000, 1024),))
    assert workers_later(held, request(2)) == 2


def test_shares_use_partly_used_gpus_before_whole_ones() -> None:
    assert bins_of(node_class(), 1) == [500, GPU]
    assert gpus_of(FreeNode("n", (GPU, 0, 500, GPU))) == [2, 0, 3]


def test_slow_gpus_of_a_node_are_given_last() -> None:
    node = FreeNode("n", (GPU, 500, 500, GPU, GPU), slow=(1, 3, 0))
    assert gpus_of(node) == [2, 1, 4, 3, 0]
    assert whole_gpus(node) == [4, 3, 0]


def test_every_node_has_one_place_and_the_rest_of_a_large_class_is_a_bundle() -> None:
    instance = Instance((node_class(nodes=10),), (request(1),))
    places = layout(instance, RoundPlan(), singles=4)
    assert sorted(node.node_id for place in places for node in place.nodes) == [
        f"n{n:02}" for n in range(10)
    ]
    assert [place.count for place in places if not place.is_single] == [6]
