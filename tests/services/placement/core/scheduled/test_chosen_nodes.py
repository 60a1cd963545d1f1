"""Nodes that a scheduler chose: taken where they may have the job, else the pool chooses others."""

from __future__ import annotations

import pytest

from services.placement.core.pool.schedule import Allotted
from services.placement.core.pool.trial import Trial
from services.placement.core.scheduled.chosen_nodes import (
    awaited_nodes,
    health_of,
    is_elsewhere,
    take_chosen,
    target_of,
)
from services.placement.core.scheduled.claims import allotted_shape
from services.placement.core.scheduled.request import propose_now
from shared.contracts.nodes import CordonNode
from shared.contracts.placement import JobPlaced
from tests.services.placement.core.lane import job, lane, only
from tests.services.placement.core.scheduled.choosing import (
    choosing,
    submit_later,
    two_nodes,
    workers_on,
)


def test_a_gang_is_spread_as_its_scheduler_says_where_best_fit_would_not() -> None:
    with choosing(one=(("a", 1), ("b", 1))):
        pool = two_nodes()
        (placed,) = only(JobPlaced, pool.submit(job("one", 1, workers=2)))
    assert workers_on(pool, "one") == {"a": 1, "b": 1}
    assert (placed.policy, placed.terms["chosen_nodes"]) == ("class_submit+chooses", 1.0)


def test_gpus_that_are_no_whole_workers_leave_the_nodes_to_the_pool() -> None:
    with choosing(one=(("a", 3), ("b", 1))):
        pool = two_nodes()
        (placed,) = only(JobPlaced, pool.submit(job("one", 2, workers=2)))
    assert workers_on(pool, "one") == {"a": 2}
    assert "chosen_nodes" not in placed.terms


def test_a_node_without_memory_for_a_worker_is_not_taken() -> None:
    """A scheduler sees GPUs alone: the memory is held by a job with a part of one."""
    with choosing(one=(("a", 2),)):
        pool = two_nodes()
        pool.run(job("part", 0.5, mem_gib=2040))
        assert pool.nodes_of("part") == ("a",)
        placed = submit_later(pool, job("one", 2, mem_gib=40))
    assert workers_on(pool, "one") == {"b": 1}
    assert placed.terms["chosen_nodes"] == 0.0


def test_a_node_that_was_cordoned_since_the_view_was_taken_is_not_taken() -> None:
    with choosing(one=(("b", 2),)):
        pool = two_nodes()
        pool.proposes = False
        pool.submit(job("one", 2))
        answer = propose_now(pool.state)
        assert answer is not None and answer.proposed[0].nodes[0].node_id == "b"
        pool.command(CordonNode(node_id="b", reason="a test"))
        pool.feed(pool.an("local", answer))
    assert workers_on(pool, "one") == {"a": 1}


@pytest.mark.parametrize(("is_free", "node"), [(True, "a"), (False, "b")])
def test_a_slow_node_is_taken_where_no_healthier_one_has_room(is_free: bool, node: str) -> None:
    with choosing(full=(("a", 4),), one=(("b", 2),)):
        pool = two_nodes()
        pool.state.board.suspect("b", "f1", 2.0, None)
        if not is_free:
            pool.run(job("full", 4))
        placed = submit_later(pool, job("one", 2))
    assert workers_on(pool, "one") == {node: 1}
    assert placed.terms["chosen_nodes"] == float(node == "b")


def test_chosen_nodes_have_to_be_in_use_of_the_type_with_room_and_open_to_the_job() -> None:
    pool = lane("a", "b", gpus=4)
    pool.submit(job("parked", 8))
    waiting = pool.job("parked")
    both = Allotted("a100", 2, (("a", 1), ("b", 1)))
    shape = allotted_shape(waiting, both)._replace(gpus=2)
    with Trial(pool.state.board) as trial:
        taken = take_chosen(trial, shape, both)
        assert [(slot.node_id, slot.gpus) for slot in taken] == [("a", (0, 1)), ("b", (0, 1))]
        trial.rollback()
        assert take_chosen(trial, shape, both, ("b",)) == []
        assert take_chosen(trial, shape, both._replace(gpu_type="h100")) == []
        assert take_chosen(trial, shape, both._replace(nodes=(("a", 1), ("gone", 1)))) == []
        assert take_chosen(trial, shape, both._replace(nodes=(("a", 1), ("b", 3)))) == []
        assert trial.log == [], "nothing stays taken of a gang that does not fit"


def test_a_target_keeps_what_the_job_has_on_its_chosen_nodes() -> None:
    pool = lane("a", "b", gpus=4)
    pool.run(job("one", 2, workers=2))
    running = pool.job("one")
    assert workers_on(pool, "one") == {"a": 2}
    both = Allotted("a100", 2, (("a", 1), ("b", 1)))
    assert is_elsewhere(running, both) and not is_elsewhere(running, both._replace(nodes=()))
    with Trial(pool.state.board) as trial:
        target = target_of(trial, running, both)
        assert [(slot.node_id, slot.gpus) for slot in target] == [("a", (0, 1)), ("b", (0, 1))]
        less = target_of(trial, running, both._replace(workers=1, nodes=(("a", 1),)))
        assert [slot.node_id for slot in less] == ["a"]
        assert target_of(trial, running, both._replace(nodes=(("a", 1), ("b", 9)))) == []
        assert health_of(pool.state.board, target) == 1


def test_only_other_jobs_that_leave_a_node_are_waited_for() -> None:
    pool = lane("a", "b", gpus=4)
    pool.run(job("one", 4), job("two", 4))
    pool.submit(job("three", 4))
    at_b = Allotted("a100", 1, (("b", 1),))
    three = pool.job("three")
    with Trial(pool.state.board) as trial:
        leaves = {"b": frozenset({"two"})}
        assert awaited_nodes(trial, three, at_b, leaves) == ["b"]
        assert awaited_nodes(trial, three, at_b, {}) == []
        assert awaited_nodes(trial, three, at_b, {"b": frozenset({"three"})}) == []
        assert awaited_nodes(trial, three, at_b._replace(gpu_type="h100"), leaves) == []
        assert awaited_nodes(trial, three, at_b._replace(nodes=(("b", 2),)), leaves) == []
