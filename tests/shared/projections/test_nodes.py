"""Nodes join, leave and are cordoned; each worker's allocation is one row."""

from __future__ import annotations

import json

from shared.contracts.attempts import AllocationReleased
from shared.contracts.base import Event
from shared.contracts.injections import FaultInjected, InjectionEnded
from shared.contracts.node_problems import NodeProblem, NodeProblemNoted
from shared.contracts.nodes import (
    NodeCordoned,
    NodeHealthNoted,
    NodeHeldBack,
    NodeLost,
    NodeUncordoned,
)
from shared.contracts.placement import Allocation, JobPlaced
from shared.projections.nodes import NodeRow, allocation_rows, fold_node, release_allocation
from tests.shared.ledger_events import AT, ledger_event, node_joined

JOINED = node_joined(cpus=64, mem_gib=512, rack="r1", labels={"zone": "a"})
LOST = NodeLost(node_id="n1", incarnation="i", reason="silent")
PLACED = JobPlaced(
    job_id="j",
    tenant="red",
    attempt=2,
    allocations=(
        Allocation(rank=0, node_id="n1", gpus=(0, 1), cpus=2, mem_gib=4),
        Allocation(rank=1, node_id="n2", gpus=(7,), gpu_milli=500),
    ),
    waited_ms=1,
    policy="fcfs",
)


def node_row(*messages: Event) -> NodeRow:
    row = NodeRow("n1", 0)
    for seq, message in enumerate(messages):
        fold_node(row, ledger_event("placement", message, seq=seq, at=AT + seq))
    return row


def test_a_node_joins_with_its_inventory() -> None:
    row = node_row(JOINED)
    assert (row.incarnation, row.executor_id, row.backend) == ("i", "e", "virtual")
    assert (row.gpu_type, row.gpus, row.cpus, row.mem_gib) == ("a100", 8, 64, 512)
    assert (row.rack, json.loads(row.labels)) == ("r1", {"zone": "a"})
    assert (row.alive, row.joined_at, row.lost_at, row.health) == (True, AT, 0, 1.0)


def test_a_node_with_an_agent_names_what_limits_its_workers() -> None:
    joined = [node_joined(backend="agent", limits=limits) for limits in ("v2", "")]
    assert [node_row(event).limits for event in joined] == ["v2", "none"]
    assert node_row(JOINED).limits == ""


def test_a_lost_node_may_join_again() -> None:
    row = node_row(JOINED, LOST)
    assert (row.alive, row.lost_at, row.reason) == (False, AT + 1, "silent")
    row = node_row(JOINED, LOST, JOINED)
    assert (row.alive, row.lost_at, row.joined_at, row.reason) == (True, 0, AT + 2, "")


def test_a_node_that_was_given_up_and_lives_says_that_it_joined_anew() -> None:
    declared = NodeLost(node_id="n1", incarnation="i", reason="declared", heard=True)
    row = node_row(JOINED, declared, JOINED)
    assert (row.alive, row.reason) == (True, "joined anew after it was declared lost")
    assert node_row(JOINED, declared, LOST, JOINED).reason == "", (
        "it was silent for long after that"
    )
    cordoned = node_row(JOINED, declared, JOINED, NodeCordoned(node_id="n1", reason="hot"))
    assert cordoned.reason == "hot"


def test_a_node_shows_that_another_machine_of_its_name_waits() -> None:
    held = NodeHeldBack(node_id="n1", reason="machine_changed", registration=JOINED)
    row = node_row(JOINED, LOST, held)
    assert row.reason.startswith("machine_changed: another machine") and not row.alive
    assert node_row(JOINED, held, JOINED).reason == ""


def test_a_cordon_lasts_until_the_node_is_uncordoned() -> None:
    row = node_row(JOINED, NodeCordoned(node_id="n1", draining=True, reason="hot"))
    assert (row.cordoned, row.draining, row.reason) == (True, True, "hot")
    row = node_row(JOINED, NodeCordoned(node_id="n1"), NodeUncordoned(node_id="n1"))
    assert (row.cordoned, row.draining, row.reason) == (False, False, "")


def test_a_cordon_that_placement_forgot_ends_with_the_next_join() -> None:
    """One that goes on is decided again behind the join."""
    cordoned = NodeCordoned(node_id="n1", draining=True, reason="hot")
    row = node_row(JOINED, cordoned, LOST, JOINED)
    assert (row.cordoned, row.draining, row.reason) == (False, False, "")
    row = node_row(JOINED, cordoned, LOST, JOINED, NodeCordoned(node_id="n1", draining=True))
    assert (row.cordoned, row.draining) == (True, True)


def test_a_node_that_left_shows_why_it_was_cordoned() -> None:
    """The loss comes first, then the reason that the agent gave."""
    failed = NodeCordoned(node_id="n1", reason="prolog_failed: mount: no route")
    left = NodeLost(node_id="n1", incarnation="i", reason="left")
    assert node_row(JOINED, failed, left).reason == "left; prolog_failed: mount: no route"
    assert node_row(JOINED, failed, left, LOST).reason == "silent; prolog_failed: mount: no route"
    assert node_row(JOINED, failed, left, NodeUncordoned(node_id="n1")).reason == "left"


def test_a_cordon_that_goes_on_after_a_join_keeps_its_reason() -> None:
    failed = NodeCordoned(node_id="n1", reason="prolog_failed: mount: no route")
    left = NodeLost(node_id="n1", incarnation="i", reason="left")
    still = NodeCordoned(node_id="n1", reason="still cordoned")
    row = node_row(JOINED, failed, left, JOINED, still)
    assert (row.cordoned, row.reason) == (True, "prolog_failed: mount: no route")
    row = node_row(JOINED, failed, left, JOINED, still, NodeUncordoned(node_id="n1"))
    assert (row.cordoned, row.reason) == (False, "")


def test_a_lost_node_that_is_cordoned_shows_both() -> None:
    row = node_row(JOINED, LOST, NodeCordoned(node_id="n1", reason="hot"))
    assert row.reason == "silent; hot"
    held = NodeHeldBack(node_id="n1", reason="machine_changed", registration=JOINED)
    assert node_row(JOINED, NodeCordoned(node_id="n1"), held, LOST).reason == "silent"


def test_an_injected_fault_is_shown_until_it_is_over() -> None:
    injected = FaultInjected(node_id="n1", fault="slow", factor=2.5, until=9, reason="drill")
    row = node_row(JOINED, injected)
    assert json.loads(row.injection) == {
        "fault": "slow",
        "factor": 2.5,
        "until": 9,
        "reason": "drill",
    }
    over = InjectionEnded(node_id="n1", fault="slow", cause="over")
    assert node_row(JOINED, injected, over).injection == "null"


def test_a_slow_node_has_a_lower_health() -> None:
    row = node_row(JOINED, NodeHealthNoted(node_id="n1", fault_id="f", slowdown=2, health=0.5))
    assert row.health == 0.5


def slow(fault_id: str, slowdown: float, gpu: int | None = None) -> NodeHealthNoted:
    return NodeHealthNoted(
        node_id="n1", fault_id=fault_id, slowdown=slowdown, health=0.5, gpu=gpu, until=7
    )


def test_a_node_shows_the_suspicions_that_its_health_follows_from() -> None:
    suspected = slow("f1", 2.0), slow("f2", 1.5, gpu=3), slow("f1", 2.5), slow("f2", 1.0, gpu=3)
    both, one = node_row(JOINED, *suspected[:3]), node_row(JOINED, *suspected)
    of_node = {"fault_id": "f1", "gpu": None, "slowdown": 2.5, "since_at": AT + 1, "until": 7}
    of_gpu = {"fault_id": "f2", "gpu": 3, "slowdown": 1.5, "since_at": AT + 2, "until": 7}
    assert json.loads(both.suspicions) == [of_gpu, of_node]
    assert json.loads(one.suspicions) == [of_node]


def test_a_placed_job_has_one_allocation_per_worker() -> None:
    first, second = allocation_rows(ledger_event("placement", PLACED, seq=3, index=1, partition=2))
    assert (first.allocation_id, second.allocation_id) == ("2/3/1/0", "2/3/1/1")
    assert (first.node_id, first.gpus, first.gpu_milli) == ("n1", "[0,1]", 1000)
    assert (second.node_id, second.gpus, second.gpu_milli) == ("n2", "[7]", 500)
    assert (first.job_id, first.tenant, first.attempt) == ("j", "red", 2)
    assert (first.cpus, first.mem_gib, first.placed_at, first.released_at) == (2, 4, AT, 0)


def test_a_released_allocation_has_its_reason_and_exit_code() -> None:
    row = allocation_rows(ledger_event("placement", PLACED))[0]
    released = AllocationReleased(
        job_id="j", attempt=2, allocation_id="0/1/0/0", node_id="n1", reason="exited", exit_code=3
    )
    release_allocation(row, ledger_event("placement", released, at=AT + 9))
    assert (row.released_at, row.reason, row.exit_code) == (AT + 9, "exited", 3)


def problem(name: NodeProblem, present: bool = True) -> NodeProblemNoted:
    return NodeProblemNoted(
        node_id="n1", incarnation="i", problem=name, present=present, detail="d"
    )


def test_a_node_shows_its_problems_since_when_until_they_are_over_or_it_joins_anew() -> None:
    row = node_row(JOINED, problem("disk_full"), problem("cloned_identity"))
    assert json.loads(row.problems) == [
        {"problem": "disk_full", "detail": "d", "gpus": [], "since_at": AT + 1},
        {"problem": "cloned_identity", "detail": "d", "gpus": [], "since_at": AT + 2},
    ]
    over = node_row(JOINED, problem("disk_full"), problem("disk_full", present=False))
    assert over.problems == "[]" == node_row(JOINED, problem("disk_full"), JOINED).problems
    assert node_row(JOINED, problem("disk_full"), LOST).problems == "[]"
