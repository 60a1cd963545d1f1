"""Nodes whose GPUs failed, are slow, or differ are cordoned by a rule, which an operator lifts."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.attempts import JobMigrated
from shared.contracts.node_problems import NodeProblem
from shared.contracts.nodes import CordonNode, DrainNode, NodeCordoned, UncordonNode
from tests.services.placement.core.lane import Lane, job, kinds, lane, only, refused
from tests.services.placement.core.test_node_problems import reported


def pool_with(*nodes: str, mitigation: str = "approve", **settings: Any) -> Lane:
    return lane(*nodes, release=1, mitigation=mitigation, **settings)


@pytest.mark.parametrize("problem", ["gpu_fault", "gpu_slow", "inventory_differs"])
def test_such_a_node_takes_no_new_work_until_the_problem_is_over(problem: NodeProblem) -> None:
    pool = pool_with("n1", "n2")
    noted, cordoned = reported(pool, problem, True)
    assert isinstance(cordoned, NodeCordoned)
    assert cordoned.reason == f"{problem}: d" and cordoned.until_joined
    pool.submit(job("a", 8), job("b", 8), after_ms=100)
    assert pool.nodes_of("a") == ("n2",)
    assert pool.job("b").phase == "waiting"
    assert kinds(reported(pool, problem, False)) == ["NodeProblemNoted", "NodeUncordoned"]
    pool.wake()
    assert pool.nodes_of("b") == ("n1",)


def test_a_job_leaves_a_failed_gpu_where_there_is_room_and_stays_otherwise() -> None:
    pool = pool_with("n1", "n2")
    pool.run(job("a", 8), job("b", 8))
    first = pool.nodes_of("a")[0]
    assert kinds(reported(pool, "gpu_fault", True, node_id=first)) == [
        "NodeProblemNoted",
        "NodeCordoned",
    ], "no room: it goes on"
    pool = pool_with("n1", "n2")
    pool.run(job("a", 8))
    first = pool.nodes_of("a")[0]
    moved = reported(pool, "gpu_fault", True, node_id=first)[-1]
    assert isinstance(moved, JobMigrated)
    assert (moved.reason, moved.from_nodes) == ("drain", (first,))


def test_jobs_stay_on_nodes_that_are_slow_or_differ() -> None:
    pool = pool_with("n1", "n2")
    pool.run(job("a", 8))
    problems: tuple[NodeProblem, ...] = ("gpu_slow", "inventory_differs")
    for problem in problems:
        reported(pool, problem, True, node_id=pool.nodes_of("a")[0])
    assert pool.job("a").phase == "running"


def test_slow_gpus_take_no_more_nodes_than_the_pools_share() -> None:
    pool = pool_with("n1", "n2", "n3", mitigation_share=0.4)
    reported(pool, "gpu_slow", True, node_id="n1")
    assert kinds(reported(pool, "gpu_slow", True, node_id="n2")) == ["NodeProblemNoted"]
    assert kinds(reported(pool, "gpu_fault", True, node_id="n3"))[1] == "NodeCordoned"
    assert set(pool.state.cordons) == {"n1", "n3"}


@pytest.mark.parametrize("settings", [{"mitigation": "off"}, {"mitigation_share": 0.0}])
def test_a_pool_may_have_no_node_cordoned_for_slow_gpus(settings: dict[str, Any]) -> None:
    pool = pool_with("n1", "n2", **settings)
    assert kinds(reported(pool, "gpu_slow", True)) == ["NodeProblemNoted"]


def test_the_cordon_lasts_until_the_last_problem_of_its_gpus_is_over() -> None:
    pool = pool_with("n1", "n2")
    reported(pool, "gpu_slow", True)
    assert kinds(reported(pool, "gpu_fault", True)) == ["NodeProblemNoted"]
    assert kinds(reported(pool, "gpu_slow", False)) == ["NodeProblemNoted"]
    assert "NodeUncordoned" in kinds(reported(pool, "gpu_fault", False))


def test_an_operator_has_the_last_word() -> None:
    pool = pool_with("n1", "n2")
    reported(pool, "gpu_fault", True)
    pool.command(UncordonNode(node_id="n1"))
    assert reported(pool, "gpu_fault", True) == [] and not pool.state.cordons
    pool.command(CordonNode(node_id="n1", reason="my own"))
    reported(pool, "gpu_fault", False)
    assert "n1" in pool.state.cordons, "it is not the rule's"


def test_an_operators_cordon_replaces_that_of_the_rule() -> None:
    pool = pool_with("n1", "n2")
    reported(pool, "gpu_fault", True)
    pool.command(CordonNode(node_id="n1", reason="the fan is replaced on monday"))
    assert kinds(reported(pool, "gpu_fault", False)) == ["NodeProblemNoted"]
    assert pool.state.cordons == {"n1": False} and not pool.state.leaving


def test_a_drain_outlasts_the_problem_and_the_next_join() -> None:
    pool = pool_with("n1", "n2")
    reported(pool, "gpu_fault", True)
    pool.command(DrainNode(node_id="n1"))
    reported(pool, "gpu_fault", False)
    assert pool.state.cordons == {"n1": True}


def test_a_node_that_joins_anew_is_schedulable() -> None:
    pool = pool_with("n1", "n2")
    reported(pool, "gpu_fault", True)
    assert "NodeUncordoned" in kinds(pool.node("n1", incarnation="i2"))
    assert not pool.state.cordons and not pool.state.cordoned_for


@pytest.mark.parametrize("reason", ["prolog_failed: exit code 3", "node_draining: it leaves"])
def test_a_node_that_refuses_all_work_stays_cordoned_when_the_problem_is_over(reason: str) -> None:
    pool = pool_with("n1", "n2")
    pool.submit(job("a", 8, workers=2))
    first, second = pool.ids_of("a")
    reported(pool, "gpu_slow", True)
    on_n1 = first if pool.job("a").allocations[first].slot.node_id == "n1" else second
    (cordoned,) = only(NodeCordoned, pool.report(refused(on_n1, "a", reason)))
    assert isinstance(cordoned, NodeCordoned) and cordoned.reason == reason
    assert kinds(reported(pool, "gpu_slow", False)) == ["NodeProblemNoted"]
    assert "n1" in pool.state.cordons
