from __future__ import annotations

from services.placement.core.round.view import view_of
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import Instance
from tests.services.placement.core.lane import Lane, job, lane


def exported(pool: Lane) -> Instance:
    return instance_of(view_of(pool.state, pool.now))


def contended(*nodes: str) -> Lane:
    pool = lane(*nodes, solver="cpsat")
    pool.submit(job("a", 6), job("b", 4), job("c", 4))
    return pool


def test_nodes_that_every_job_treats_alike_are_one_class() -> None:
    pool = lane("x", "y", solver="cpsat")
    pool.submit(job("a", 9), job("b", 6), job("c", 6), job("d", 6))
    (nodes,) = exported(pool).classes
    assert [node.node_id for node in nodes.nodes] == ["x", "y"] and nodes.whole == 8


def test_the_first_job_that_fits_must_start() -> None:
    instance = exported(contended("x"))
    assert [request.job_id for request in instance.requests] == ["a", "b", "c"]
    assert [request.must_start for request in instance.requests] == [True, False, False]
    assert instance.requests[0].value > instance.requests[1].value


def test_greedys_plan_of_the_same_view_is_part_of_the_instance() -> None:
    (start,) = exported(contended("x")).greedy.starts
    assert start.request == 0 and [slot.gpus for slot in start.slots] == [(0, 1, 2, 3, 4, 5)]


def test_a_full_node_is_only_counted() -> None:
    pool = lane("x", "y", solver="cpsat")
    pool.run(job("r", 8, preemptible=False))
    pool.submit(job("a", 6), job("b", 4), job("c", 4))
    assert exported(pool).full_nodes == 1
