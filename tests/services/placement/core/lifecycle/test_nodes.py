"""Nodes come and go, and operators take them out of use."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.inputs.gather import Batch
from shared.bus.inputs.inbox import PendingRecord
from shared.bus.inputs.local_inputs import LocalInput
from shared.bus.lane.draft import Draft, draft_facts
from shared.contracts.attempts import AllocationReleased, JobPreempted
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.nodes import CordonNode, DrainNode, NodeCordoned, NodeLost, UncordonNode
from shared.contracts.placement import JobPlaced
from shared.contracts.reports import ExecutorReported, NodesSilent, Report
from shared.ledger.decider import Fact, Input
from shared.ledger.partition import TP
from tests.services.placement.core.lane import (
    Lane,
    exited,
    job,
    kinds,
    lane,
    left,
    only,
    refused,
    registered,
)


def test_a_node_joins_once_however_often_it_says_so() -> None:
    pool = lane()
    assert kinds(pool.node("n1")) == ["NodeJoined"]
    assert pool.node("n1") == []


def test_a_silent_node_is_released_and_its_gang_waits_for_the_workers_on_other_nodes() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 8, workers=2))
    other = next(
        i for i, allocation in pool.job("a").allocations.items() if allocation.slot.node_id == "n2"
    )
    lost, preempted, released = pool.silent("n1")
    assert isinstance(lost, NodeLost) and (lost.reason, lost.silent_s) == ("silent", 60.0)
    assert isinstance(preempted, JobPreempted) and preempted.reason == "node_lost"
    assert preempted.terms["silent_s"] == preempted.terms["lost_after_s"] == 60.0
    assert isinstance(released, AllocationReleased) and released.reason == "lease_over"
    assert list(pool.state.board.nodes) == ["n2"] and pool.state.lost == {}
    assert pool.job("a").phase == "stopping", "half of the gang may still run"
    events = pool.report(exited(other, "a", 143))
    assert kinds(events)[:2] == ["AllocationReleased", "JobRequeued"]


def test_a_lost_node_without_jobs_is_forgotten_at_once() -> None:
    pool = lane("n1")
    pool.silent("n1")
    assert pool.state.board.nodes == {} and pool.decider.next_wake(pool.state) is None


def test_nothing_starts_on_a_lost_node() -> None:
    pool = lane("n1")
    pool.run(job("a"))
    pool.silent("n1")
    pool.submit(job("b"), after_ms=100)
    assert pool.job("b").hold_reason == "no_node_fits"


def test_silence_of_another_incarnation_is_old_news() -> None:
    pool = lane("n1")
    silence = NodesSilent(nodes=(pool.silence_of("n1"),))
    pool.node("n1", incarnation="i2")
    pool.run(job("a"))
    before = len(pool.facts)
    pool.report(left("n1", "i1"))
    pool.feed(pool.an("local", silence))
    assert len(pool.facts) == before


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
    events = pool.report(registered("n1", 2, incarnation="i2"), after_ms=100)
    assert kinds(events) == ["NodeJoined", "JobPlaced"]


def test_a_leaving_node_is_lost_at_once() -> None:
    pool = lane("n1")
    (lost,) = pool.report(left("n1"))
    assert isinstance(lost, NodeLost) and lost.reason == "left"


def crowded(gangs: int = 12, workers: int = 100) -> Lane:
    """A node with many shares of its GPUs in use."""
    pool = lane("n1", gpus=64)
    for n in range(gangs):
        pool.submit(job(f"j{n}", 0.01, workers=workers, cpus=0, mem_gib=0))
    pool.ready("j0")
    return pool


def in_records(pool: Lane, batch: Batch, most: int) -> list[list[Event]]:
    """Return the events by record, where a record is full with `most` of them."""
    records: list[list[Event]] = []
    while True:
        draft = Draft(pool.now)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("shared.bus.lane.draft.MAX_EVENTS", most)
            draft_facts(pool.decider, pool.state, batch, draft, TP("placement", 0), 99)
        records.append([fact.event for fact in draft.facts])
        if draft.used is None:
            return records
        if draft.used == batch:
            batch = Batch([], [])


def reports_batch(pool: Lane, *reports: Report) -> Batch:
    item = pool.an("reports", ExecutorReported(executor_id="e1", reports=reports))
    return Batch([], [PendingRecord("reports-0", 0, 1, (item,), 10, 0)])


def local_batch(item: Input) -> Batch:
    with asyncio.Runner() as runner:
        return Batch([LocalInput(item, runner.get_loop().create_future())], [])


def test_many_leases_of_a_lost_node_are_released_in_bounded_records() -> None:
    pool = crowded()
    silent = pool.an("local", NodesSilent(nodes=(pool.silence_of("n1"),)))
    records = in_records(pool, local_batch(silent), most=500)
    assert [len(record) for record in records[:-1]] == [500, 500]
    assert sum(len(only(AllocationReleased, record)) for record in records) == 1200
    assert pool.state.board.nodes == {} and len(pool.state.waiting) == 12


def without_terms(records: list[list[Event]]) -> list[Event]:
    """Return the events in order, without the figures of a round, which begins again if cut."""
    return [
        event.model_copy(update={"terms": {}}) if isinstance(event, JobPlaced) else event
        for record in records
        for event in record
    ]


@pytest.mark.parametrize("most", [1, 7, 40])
def test_a_full_record_moves_the_bounds_of_records_and_nothing_else(most: int) -> None:
    """A node with twelve gangs is replaced: preemptions, releases, the join, new placements."""
    whole, cut = crowded(workers=3), crowded(workers=3)
    again = registered("n1", 64, incarnation="i2")
    expected = in_records(whole, reports_batch(whole, again), most=1 << 30)
    records = in_records(cut, reports_batch(cut, again), most)
    assert len(expected) == 1 < len(records)
    assert without_terms(records) == without_terms(expected)
    assert cut.state.board == whole.state.board
    assert [*cut.state.running] == [*whole.state.running]


def test_a_gang_that_was_not_stopped_with_its_node_is_requeued_and_never_succeeds() -> None:
    """A local input may be lost between two records: its node is lost, its gangs not stopped."""
    pool = crowded(gangs=2, workers=2)
    lost = NodeLost(node_id="n1", incarnation="i1", reason="silent", silent_s=60.0)
    pool.decider.evolve(pool.state, Fact(lost, "placement", 0, 99, 0, 1))
    ends = kinds(pool.wake())
    assert ends.count("JobRequeued") == 2 and "JobSucceeded" not in ends


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


def test_a_node_that_refuses_all_work_gets_none_until_it_joins_anew() -> None:
    pool = lane("n1")
    pool.submit(job("a"))
    (cordoned,) = only(
        NodeCordoned, pool.report(refused(pool.ids_of("a")[0], "a", "node_draining"))
    )
    assert isinstance(cordoned, NodeCordoned) and cordoned.until_joined
    assert "JobPlaced" not in kinds(pool.submit(job("b")))
    pool.report(left("n1"))
    assert kinds(pool.report(registered("n1", incarnation="i2")))[:2] == [
        "NodeJoined",
        "NodeUncordoned",
    ]
    pool.feed(after_ms=60_000)
    assert pool.job("b").phase == "placed"


def test_a_failed_prolog_cordons_the_node_until_an_operator_lifts_it() -> None:
    pool = lane("n1")
    pool.submit(job("a", workers=2))
    first, second = pool.ids_of("a")
    reason = "prolog_failed: exit code 3"
    events = pool.report(refused(first, "a", reason), refused(second, "a", reason))
    (cordoned,) = only(NodeCordoned, events)
    assert isinstance(cordoned, NodeCordoned) and cordoned.reason == reason
    pool.report(left("n1"))
    assert "NodeUncordoned" not in kinds(pool.report(registered("n1", incarnation="i2")))
    assert pool.job("a").phase == "waiting"
    pool.command(UncordonNode(node_id="n1"))
    pool.feed(after_ms=60_000)
    assert pool.job("a").phase == "placed"


def test_a_node_with_fewer_gpus_than_it_registered_is_cordoned_until_it_joins_anew() -> None:
    """It leaves at once where nothing runs: the ledger keeps why."""
    pool = lane(backends=("agent",))
    pool.report(registered("n1", backend="agent"))
    pool.submit(job("a"))
    report = refused(pool.ids_of("a")[0], "a", "no_such_gpu: GPUs [1]: not usable")
    (cordoned,) = only(NodeCordoned, pool.report(report))
    assert isinstance(cordoned, NodeCordoned) and cordoned.until_joined
    assert cordoned.reason == "no_such_gpu: GPUs [1]: not usable"
    pool.report(left("n1"))
    again = registered("n1", incarnation="i2", backend="agent", gpus=4)
    assert "NodeUncordoned" in kinds(pool.report(again))


def test_a_virtual_node_is_not_cordoned_for_a_gpu_that_it_lacks() -> None:
    """It never joins anew by itself."""
    pool = lane("n1")
    pool.submit(job("a"))
    report = refused(pool.ids_of("a")[0], "a", "no_such_gpu: x")
    assert only(NodeCordoned, pool.report(report)) == []


def test_a_busy_gpu_cordons_no_node() -> None:
    pool = lane("n1")
    pool.submit(job("a"))
    (allocation_id,) = pool.ids_of("a")
    assert only(NodeCordoned, pool.report(refused(allocation_id, "a"))) == []
