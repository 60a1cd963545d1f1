"""Problems of nodes: noted once, and a full disk keeps new work away until it is over."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.placement.app import decode_report
from shared.contracts.base import Event, UnknownType
from shared.contracts.node_problems import NodeProblem, NodeProblemNoted, NodeProblemsReported
from shared.contracts.node_problems import ReportedProblem as Reported
from shared.contracts.nodes import CordonNode, UncordonNode
from shared.contracts.placement import JobHeld
from tests.services.placement.core.lane import Lane, job, kinds, lane


def pool_with(*nodes: str) -> Lane:
    return lane(*nodes, release=1)


def reported(
    pool: Lane, problem: NodeProblem, present: bool, node_id: str = "n1", incarnation: str = "i1"
) -> list[Event]:
    report = Reported(
        node_id=node_id, incarnation=incarnation, problem=problem, present=present, detail="d"
    )
    return pool.feed(pool.an("reports", NodeProblemsReported(executor_id="e1", problems=(report,))))


def test_a_problem_and_its_end_are_noted_once_however_often_they_are_reported() -> None:
    pool = pool_with("n1")
    for present in (True, False, True):
        [noted] = reported(pool, "cloned_identity", present)
        assert isinstance(noted, NodeProblemNoted)
        assert (noted.node_id, noted.problem, noted.present) == ("n1", "cloned_identity", present)
        for _ in range(3):
            assert reported(pool, "cloned_identity", present) == []
    assert reported(pool, "disk_full", False) == []


def test_before_the_end_of_the_upgrade_no_problem_is_noted() -> None:
    pool = lane("n1")
    assert reported(pool, "disk_full", True) == []


def test_a_problem_of_an_unknown_or_lost_node_or_of_another_incarnation_is_old_news() -> None:
    pool = pool_with("n1", "n2")
    assert reported(pool, "disk_full", True, node_id="ghost") == []
    assert reported(pool, "disk_full", True, incarnation="i2") == []
    pool.run(job("a", 8), job("b", 8))
    pool.silent("n1", "n2")
    assert reported(pool, "disk_full", True) == []


def test_nothing_starts_on_a_node_with_a_full_disk_until_it_has_space_again() -> None:
    pool = pool_with("n1")
    pool.run(job("a", 4))
    reported(pool, "disk_full", True)
    [held] = [e for e in pool.submit(job("b", 4), after_ms=100) if isinstance(e, JobHeld)]
    assert (held.reason, pool.job("a").phase) == ("disk_full", "running")
    assert held.detail["free_gpus"] == 0
    reported(pool, "disk_full", False)
    pool.wake()
    assert pool.job("b").phase == "placed"


@pytest.mark.parametrize("problem", ["engine_drained", "foreign_work"])
def test_a_node_that_its_engine_or_others_use_takes_nothing_new(problem: NodeProblem) -> None:
    pool = pool_with("n1")
    pool.run(job("a", 4))
    reported(pool, problem, True)
    [held] = [e for e in pool.submit(job("b", 4), after_ms=100) if isinstance(e, JobHeld)]
    assert (held.reason, pool.job("a").phase) == ("draining", "running")
    reported(pool, problem, False)
    pool.wake()
    assert pool.job("b").phase == "placed"


def test_a_cloned_identity_keeps_no_work_away() -> None:
    pool = pool_with("n1")
    reported(pool, "cloned_identity", True)
    pool.submit(job("b", 4), after_ms=100)
    assert pool.job("b").phase == "placed"


def test_the_reason_is_that_which_an_operator_can_end() -> None:
    pool = pool_with("n1", "n2")
    reported(pool, "disk_full", True)
    pool.submit(job("wide", 8, workers=2), job("huge", 9), after_ms=100)
    assert pool.job("wide").hold_reason == "disk_full", "with the disk of n1 it would fit"
    assert pool.job("huge").hold_reason == "no_node_fits"
    pool.command(CordonNode(node_id="n1"))
    pool.wake()
    assert pool.job("wide").hold_reason == "draining", "a cordon outlasts the full disk"
    pool.command(UncordonNode(node_id="n1"))
    pool.wake()
    assert pool.job("wide").hold_reason == "disk_full"


def test_a_node_that_joins_anew_begins_without_problems() -> None:
    pool = pool_with("n1")
    reported(pool, "disk_full", True)
    pool.node("n1", incarnation="i2")
    pool.submit(job("b", 4), after_ms=100)
    assert pool.job("b").phase == "placed"
    assert kinds(reported(pool, "disk_full", True, incarnation="i2"))[:1] == ["NodeProblemNoted"]


def test_a_reader_refuses_a_kind_of_report_and_a_message_that_it_does_not_know() -> None:
    """That is why problems are a message of their own, which no earlier release gets."""
    report = b'{"executor_id": "e1", "reports": [{"kind": "node_condition", "node_id": "n1"}]}'
    with pytest.raises(ValidationError, match="node_condition"):
        decode_report("reports", "executor.reported.v1", report)
    with pytest.raises(UnknownType):
        decode_report("reports", "nodes.conditions.v1", b"{}")
