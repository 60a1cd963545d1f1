"""Nodes are one class where every job of the window treats them alike."""

from __future__ import annotations

from services.placement.core.solver.node_classes import group_nodes, next_worker
from services.placement.core.solver.offered_victims import offer_victims
from tests.services.placement.core.lane import job, lane
from tests.services.placement.core.solver.rounds import exported, preempting, window_of


def test_nodes_that_every_job_treats_alike_are_one_class() -> None:
    pool = lane("x", "y", solver="cpsat")
    pool.submit(job("a", 9), job("b", 6), job("c", 6), job("d", 6))
    (nodes,) = exported(pool).classes
    assert [node.node_id for node in nodes.nodes] == ["x", "y"] and nodes.whole == 8


def test_a_full_node_is_only_counted() -> None:
    pool = lane("x", "y", solver="cpsat")
    pool.run(job("r", 8, preemptible=False))
    pool.submit(job("a", 6), job("b", 4), job("c", 4))
    assert exported(pool).full_nodes == 1


def test_a_full_node_with_a_victim_has_a_class() -> None:
    with window_of(preempting("x")) as (window, greedy):
        board = window.view.board
        assert group_nodes(board, window, {}).full == 1
        grouped = group_nodes(board, window, offer_victims(window, greedy).shares)
        assert grouped.full == 0 and grouped.class_of == {"x": 0}
        assert [share.whole for share in grouped.classes[0].victim_shares] == [8]


def test_the_next_worker_is_that_of_the_first_job_that_does_not_fit() -> None:
    with window_of(preempting("x")) as (window, _):
        assert next_worker(window).gpus == 8
