"""Nodes come and go, and operators take them out of use."""

from __future__ import annotations

from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.nodes import CordonNode, DrainNode, NodeLost, UncordonNode
from shared.contracts.placement import AllocationReleased, JobPreempted, JobRequeued
from tests.services.placement.core.lane import (
    Lane,
    exited,
    job,
    kinds,
    lane,
    left,
    only,
    registered,
)


def test_a_node_joins_once_however_often_it_says_so() -> None:
    pool = lane()
    assert kinds(pool.node("n1")) == ["NodeJoined"]
    assert pool.node("n1") == []


def test_a_lost_node_stops_its_gangs_and_keeps_its_gpus_until_the_lease_is_over() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 8, workers=2))
    lost, preempted = pool.silent("n1")
    assert isinstance(lost, NodeLost) and lost.reason == "silent"
    assert isinstance(preempted, JobPreempted) and preempted.reason == "node_lost"
    other = next(
        i for i, allocation in pool.job("a").allocations.items() if allocation.slot.node_id == "n2"
    )
    assert kinds(pool.report(exited(other, "a", 143))) == ["AllocationReleased"]
    assert pool.decider.next_wake(pool.state) == pool.now + 30_000
    released, requeued = pool.wake()[:2]
    assert isinstance(released, AllocationReleased) and released.reason == "lease_over"
    assert isinstance(requeued, JobRequeued) and requeued.reason == "node_lost"
    assert list(pool.state.board.nodes) == ["n2"] and pool.state.lost == {}


def test_a_lost_node_without_jobs_is_forgotten_at_once() -> None:
    pool = lane("n1")
    pool.silent("n1")
    assert pool.state.board.nodes == {} and pool.decider.next_wake(pool.state) is None


def test_nothing_starts_on_a_lost_node() -> None:
    pool = lane("n1")
    pool.run(job("a"))
    pool.silent("n1")
    pool.submit(job("b"))
    assert pool.job("b").hold_reason == "no_node_fits"


def test_silence_of_another_incarnation_is_old_news() -> None:
    pool = lane("n1")
    (published,) = [pool.silent("n1")]
    pool.node("n1", incarnation="i2")
    before = len(pool.facts)
    pool.report(left("n1", "i1"))
    assert kinds(published) == ["NodeLost"] and len(pool.facts) == before


def test_a_new_incarnation_frees_what_the_old_one_held_at_once() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("a", 2))
    (old,) = pool.ids_of("a")
    events = pool.report(registered("n1", 2, incarnation="i2"), exited(old, "a"))
    assert kinds(events) == [
        "NodeLost",
        "JobPreempted",
        "AllocationReleased",
        "JobRequeued",
        "NodeJoined",
        "JobPlaced",
    ]
    assert events[0].reason == "replaced"  # type: ignore[attr-defined]


def test_a_node_that_comes_back_after_it_was_lost_is_used_again() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("a", 2))
    pool.silent("n1")
    assert pool.report(registered("n1", 2)) == [], "its old incarnation is gone for good"
    events = pool.report(registered("n1", 2, incarnation="i2"))
    assert kinds(events) == ["AllocationReleased", "JobRequeued", "NodeJoined", "JobPlaced"]


def test_a_leaving_node_is_lost_at_once() -> None:
    pool = lane("n1")
    (lost,) = pool.report(left("n1"))
    assert isinstance(lost, NodeLost) and lost.reason == "left"


def test_many_leases_of_a_lost_node_are_released_in_bounded_steps() -> None:
    pool = lane("n1", gpus=64)
    jobs = [job(f"j{n}", 0.01, workers=100, cpus=0, mem_gib=0) for n in range(12)]
    for each in jobs:
        pool.submit(each)
    pool.silent("n1")
    assert len(only(AllocationReleased, pool.wake())) == 1000
    assert len(only(AllocationReleased, pool.wake())) == 200


def operate(pool: Lane, message: CordonNode | DrainNode | UncordonNode, id: str = "") -> list[str]:
    events = pool.command(message, id)
    return kinds(events)


def test_nothing_new_starts_on_a_cordoned_node_and_what_runs_goes_on() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("a"))
    assert operate(pool, CordonNode(node_id="n1")) == ["NodeCordoned", "CommandAccepted"]
    pool.submit(job("b"))
    assert pool.job("b").hold_reason == "draining" and pool.job("a").phase == "running"
    assert "NodeUncordoned" in operate(pool, UncordonNode(node_id="n1"))
    pool.feed(after_ms=100)
    assert pool.job("b").phase == "placed"


def test_a_drained_node_sends_its_jobs_away_whatever_their_guarantee() -> None:
    pool = lane("n1")
    pool.run(job("a", guaranteed_s=1e6, preemptible=False))
    events = operate(pool, DrainNode(node_id="n1"))
    assert events == ["NodeCordoned", "JobPreempted", "CommandAccepted"]
    pool.node("n2")
    pool.stopped("a", after_ms=100)
    assert pool.nodes_of("a") == ("n2",)


def test_a_cordon_outlives_the_executor_of_the_node() -> None:
    pool = lane("n1")
    operate(pool, CordonNode(node_id="n1"))
    events = kinds(pool.node("n1", incarnation="i2"))
    assert events == ["NodeLost", "NodeJoined", "NodeCordoned"]
    pool.submit(job("a"))
    assert pool.job("a").phase == "waiting"


def test_a_command_is_answered_once_and_a_node_as_asked_for_is_a_duplicate() -> None:
    pool = lane("n1")
    assert operate(pool, CordonNode(node_id="n1"), "c1") == ["NodeCordoned", "CommandAccepted"]
    assert operate(pool, CordonNode(node_id="n1"), "c1") == []
    (again,) = pool.command(CordonNode(node_id="n1"), "c2")
    assert isinstance(again, CommandAccepted) and again.duplicate
    (idle,) = pool.command(UncordonNode(node_id="n1"), "c3")[1:]
    assert isinstance(idle, CommandAccepted) and not idle.duplicate


def test_a_cordoned_node_can_be_drained_but_a_drained_one_is_not_merely_cordoned() -> None:
    pool = lane("n1")
    operate(pool, CordonNode(node_id="n1"))
    assert operate(pool, DrainNode(node_id="n1")) == ["NodeCordoned", "CommandAccepted"]
    assert operate(pool, CordonNode(node_id="n1")) == ["CommandAccepted"]
    assert pool.state.cordons == {"n1": True}


def test_an_unknown_node_and_a_lane_without_pool_are_refused() -> None:
    (no,) = lane().command(DrainNode(node_id="n9"))
    assert isinstance(no, CommandRefused) and no.reason == "unknown_node"
    (no,) = Lane().command(DrainNode(node_id="n9"))
    assert isinstance(no, CommandRefused) and no.reason == "unknown_pool"
