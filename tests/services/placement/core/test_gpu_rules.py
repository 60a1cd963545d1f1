"""Nodes whose GPUs failed, are slow, or differ are cordoned by a rule, which an operator lifts."""

from __future__ import annotations

from typing import Any

import pytest

from services.placement.core.pool import fold_nodes
from shared.contracts.attempts import JobMigrated
from shared.contracts.base import Event
from shared.contracts.faults import FaultDismissed
from shared.contracts.node_problems import NodeProblem
from shared.contracts.nodes import CordonNode, DrainNode, NodeCordoned, UncordonNode
from shared.ledger.decider import Fact
from tests.services.placement.core.lane import Lane, job, kinds, lane, only, refused
from tests.services.placement.core.test_node_problems import reported

PROBLEMS: tuple[NodeProblem, ...] = ("gpu_fault", "gpu_slow", "inventory_differs")


def suspected(pool: Lane) -> None:
    """Fail-slow has n1 cordoned."""
    cordoned = NodeCordoned(node_id="n1", fault_ids=("j1/1/0/1",))
    fold_nodes.cordon(pool.state, cordoned, Fact(cordoned, "placement", 0, 1, 0, 0))


def dismissed(pool: Lane) -> list[Event]:
    message = FaultDismissed(
        fault_id="j1/1/0/1", job_id="j1", node_id="n1", tenant="acme", false_alarm=False
    )
    return pool.feed(pool.an("failslow", message))


def pool_with(*nodes: str, mitigation: str = "approve", **settings: Any) -> Lane:
    return lane(*nodes, release=1, mitigation=mitigation, **settings)


@pytest.mark.parametrize("problem", ["gpu_slow", "inventory_differs"])
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
    assert kinds(reported(pool, "inventory_differs", True)) == ["NodeProblemNoted"]
    assert kinds(reported(pool, "gpu_slow", False)) == ["NodeProblemNoted"]
    assert "NodeUncordoned" in kinds(reported(pool, "inventory_differs", False))


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


def test_a_node_that_joins_anew_after_a_boot_is_schedulable() -> None:
    pool = pool_with("n1", "n2")
    reported(pool, "gpu_fault", True)
    assert "NodeUncordoned" in kinds(pool.node("n1", incarnation="i2"))
    assert not pool.state.cordons and not pool.state.cordoned_for and not pool.state.fault_boots


def test_a_failed_gpu_stays_out_of_use_when_its_agent_alone_is_restarted() -> None:
    pool = pool_with("n1", "n2")
    reported(pool, "gpu_fault", True)
    for incarnation in ("i2", "i3"):
        joined = pool.node("n1", incarnation=incarnation, boot_id="boot-i1")
        assert kinds(joined)[-1] == "NodeCordoned"
    assert reported(pool, "gpu_fault", False, incarnation="i3") == []
    assert pool.state.cordoned_for == {"n1": ("gpu_fault",)}
    assert "NodeUncordoned" in kinds(pool.node("n1", incarnation="i4"))


def test_a_failure_that_is_not_reported_any_more_keeps_its_cordon_until_an_operator_lifts_it() -> (
    None
):
    pool = pool_with("n1", "n2")
    reported(pool, "gpu_slow", True)
    assert kinds(reported(pool, "gpu_fault", True))[1] == "NodeCordoned", "for both now"
    for problem in PROBLEMS:
        reported(pool, problem, False)
    assert pool.state.cordoned_for == {"n1": ("gpu_slow", "gpu_fault")}
    assert kinds(reported(pool, "gpu_fault", True)) == ["NodeProblemNoted"], "it is cordoned"
    pool.command(UncordonNode(node_id="n1"))
    assert not pool.state.cordons and not pool.state.fault_boots


@pytest.mark.parametrize("is_over", [False, True])
def test_a_failure_under_a_cordon_of_fail_slow_outlasts_its_dismissal(is_over: bool) -> None:
    pool = pool_with("n1", "n2")
    suspected(pool)
    reported(pool, "gpu_fault", True)
    if is_over:
        reported(pool, "gpu_fault", False)
    assert kinds(dismissed(pool))[-2:] == ["NodeUncordoned", "NodeCordoned"]
    assert pool.state.cordoned_for == {"n1": ("gpu_fault",)}


def test_slow_gpus_under_a_cordon_of_fail_slow_outlast_its_dismissal() -> None:
    pool = pool_with("n1", "n2")
    suspected(pool)
    reported(pool, "gpu_slow", True)
    dismissed(pool)
    assert pool.state.cordoned_for == {"n1": ("gpu_slow",)}


def test_an_operators_cordon_outlasts_the_dismissal_of_a_suspicion() -> None:
    pool = pool_with("n1", "n2")
    suspected(pool)
    assert "NodeCordoned" in kinds(pool.command(CordonNode(node_id="n1", reason="mine")))
    assert "NodeUncordoned" not in kinds(dismissed(pool))
    assert pool.state.cordons == {"n1": False}


def test_a_driver_that_shows_a_problem_everywhere_takes_half_of_the_nodes_at_most() -> None:
    names = [f"n{number}" for number in range(1, 9)]
    pool = pool_with(*names, mitigation="off")
    for number, name in enumerate(names):
        problem: NodeProblem = "gpu_fault" if number % 2 else "inventory_differs"
        reported(pool, problem, True, node_id=name)
    assert set(pool.state.cordons) == set(names[:4])


def test_a_node_that_reports_a_failure_leaves_the_share_of_slow_ones_as_it_is() -> None:
    pool = pool_with("n1", "n2", "n3", mitigation_share=0.1)
    reported(pool, "gpu_fault", True, node_id="n1")
    reported(pool, "gpu_slow", True, node_id="n2")
    assert set(pool.state.cordons) == {"n1", "n2"}


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
