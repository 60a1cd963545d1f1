"""Jobs that move on purpose: what is kept for them, where they land, and who may propose it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from services.placement.core.migration.rules import MIGRATIONS_PER_ROUND, allowed_migrations
from services.placement.core.pool.shape import Slot
from services.placement.core.pool.state import Pool
from services.placement.core.round.plan import Eviction, Migration, Plan
from services.placement.core.round.view import view_of
from shared.contracts.attempts import JobMigrated, JobPreempted, JobRequeued
from shared.contracts.base import Event
from shared.contracts.nodes import CordonNode, DrainNode
from shared.contracts.placement import JobPlaced
from tests.services.placement.core.lane import Lane, job, kinds, lane, only


def drain(pool: Lane, node: str) -> list[Event]:
    return pool.command(DrainNode(node_id=node))


def moved(events: list[Event]) -> list[JobMigrated]:
    return [event for event in events if isinstance(event, JobMigrated)]


def test_a_job_on_a_drained_node_goes_on_where_there_is_room() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 4, checkpoint_interval_s=10))
    pool.feed(after_ms=25_000)
    (decided,) = moved(drain(pool, "n1"))
    assert (decided.reason, decided.from_nodes, decided.to_nodes) == ("drain", ("n1",), ("n2",))
    assert decided.lost_work_s == 5
    assert [a.gpus for a in decided.target] == [(0, 1, 2, 3)]
    assert pool.job("a").phase == "stopping"
    events_then = pool.stopped("a")
    assert kinds(events_then) == ["AllocationReleased", "JobRequeued", "JobPlaced"]
    requeued, placed = events_then[1:]
    assert isinstance(requeued, JobRequeued) and requeued.reason == "migrated"
    assert isinstance(placed, JobPlaced) and placed.policy == "kept"
    assert placed.attempt == 2 and placed.allocations == decided.target
    assert not pool.state.migrations


def test_only_the_workers_on_the_drained_node_go_elsewhere() -> None:
    pool = lane("n1", "n2", "n3")
    pool.run(job("a", 8, workers=2))
    (decided,) = moved(drain(pool, "n1"))
    assert [a.node_id for a in decided.target] == ["n3", "n2"]
    pool.stopped("a", after_ms=100)
    assert pool.nodes_of("a") == ("n3", "n2")


def test_where_there_is_no_room_it_is_preempted_and_waits() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 8), job("b", 1))
    assert only(JobPreempted, drain(pool, "n1")) and not pool.state.migrations


def test_of_several_the_highest_class_has_the_room() -> None:
    pool = lane("n1", "n2")
    pool.run(job("x", 4))
    pool.run(job("low", 4, priority_class="low"))
    pool.run(job("y", 4))
    pool.run(job("high", 4, priority_class="high"))
    assert [pool.nodes_of(n) for n in ("x", "low", "y")] == [("n1",), ("n1",), ("n2",)]
    pool.exited("y", "high")
    pool.run(job("block", 4, preemptible=False))
    assert pool.nodes_of("block") == ("n2",)
    pool.exited("x")
    pool.run(job("top", 4, priority_class="high"))
    decided = drain(pool, "n1")
    assert [e.job_id for e in moved(decided)] == ["top"]
    assert [e.job_id for e in decided if isinstance(e, JobPreempted)] == ["low"]


def test_a_reserved_target_is_not_given_to_another_job() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 4))
    drain(pool, "n1")
    pool.submit(job("b", 8, priority_class="system"), job("c", 4), job("d", 1), after_ms=100)
    assert [pool.job(name).phase for name in "bcd"] == ["waiting", "placed", "waiting"]
    pool.stopped("a", after_ms=100)
    assert pool.nodes_of("a") == ("n2",)


def test_a_job_that_had_no_go_yet_is_preempted() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("a"))
    assert kinds(drain(pool, "n1"))[1] == "JobPreempted"


def test_a_target_that_is_lost_meanwhile_sends_it_to_the_line() -> None:
    pool = lane("n1", "n2", "n3", gpus=4)
    pool.run(job("a", 4))
    drain(pool, "n1")
    pool.command(CordonNode(node_id="n2"))
    pool.stopped("a", after_ms=100)
    assert pool.nodes_of("a") == ("n3",)
    assert not pool.state.migrations


def test_a_target_counts_for_one_round_only() -> None:
    pool = lane("n1", "n2", gpus=4)
    pool.run(job("a", 4))
    drain(pool, "n1")
    pool.command(CordonNode(node_id="n2"), "c")
    pool.stopped("a", after_ms=100)
    assert pool.job("a").phase == "waiting"
    pool.node("n3", 4)
    pool.feed(after_ms=100)
    assert pool.nodes_of("a") == ("n3",)


def test_what_is_kept_stays_so_until_the_round_that_follows_its_requeue() -> None:
    """News settle for a while before a round; an operator may drain another node meanwhile."""
    pool = lane("n1", "n2", "n3", gpus=4, settle_ms=50)
    pool.submit(job("a", 4), job("b", 4))
    pool.wake()
    pool.ready("a", "b")
    assert pool.nodes_of("b") == ("n2",)
    drain(pool, "n1")
    pool.stopped("a")
    assert pool.job("a").phase == "waiting"
    assert not moved(drain(pool, "n2"))
    pool.wake()
    assert pool.nodes_of("a") == ("n3",)


def test_a_cancel_on_the_way_ends_it_and_frees_its_target() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 8))
    drain(pool, "n1")
    pool.cancel("a")
    assert "JobCancelled" in kinds(pool.stopped("a"))
    assert not pool.state.migrations
    pool.submit(job("b", 8))
    assert pool.nodes_of("b") == ("n2",)


def test_one_that_finishes_before_it_stops_has_succeeded() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 8))
    drain(pool, "n1")
    assert kinds(pool.exited("a"))[-1] == "JobSucceeded"
    assert not pool.state.migrations


def test_a_second_drain_on_the_way_does_not_move_it_twice() -> None:
    pool = lane("n1", "n2", "n3")
    pool.run(job("a", 8))
    drain(pool, "n1")
    assert not moved(drain(pool, "n2"))
    pool.stopped("a", after_ms=100)
    assert pool.nodes_of("a") == ("n3",)


def test_room_that_a_claim_waits_for_is_left_alone() -> None:
    """`big` waits for `low` to stop, and counts on the four GPUs that are free beside it."""
    pool = lane("n1", "n2")
    pool.run(job("a", 8, priority_class="high"))
    pool.run(job("low", 4, priority_class="low"))
    assert (pool.nodes_of("a"), pool.nodes_of("low")) == (("n1",), ("n2",))
    pool.submit(job("big", 4, workers=2), after_ms=100)
    assert list(pool.state.reservations) == ["big"]
    pool.node("n3", 2)
    pool.run(job("b", 2), job("c", 2), after_ms=100)
    assert pool.nodes_of("b") == ("n3",) and pool.job("c").phase == "waiting"
    assert only(JobPreempted, drain(pool, "n3"))


def test_a_replay_and_a_snapshot_hold_the_targets() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", 0.5, workers=3))
    drain(pool, "n1")
    again = Pool(0)
    for fact in pool.facts:
        pool.decider.evolve(again, fact)
    assert again == pool.state == pickle.loads(pickle.dumps(pool.state))
    assert again.migrations


def slot(node: str, *gpus: int) -> Slot:
    return Slot(node, gpus, 1000, 1000, 1024)


def proposal(pool: Lane, *migrations: tuple[str, list[Slot]]) -> Plan:
    return Plan(
        migrations=[Migration(pool.job(name), slots, "defragment") for name, slots in migrations]
    )


def judged(pool: Lane, plan: Plan) -> list[str]:
    return [
        m.job.job_id for m in allowed_migrations(pool.state, view_of(pool.state, pool.now), plan)
    ]


@pytest.fixture
def pool() -> Lane:
    """a on n1 (0, 1), b on n1 (2, 3), n2 empty; both have run for a while."""
    result = lane("n1", "n2", gpus=4, min_residency_s=60.0)
    result.run(job("a", 2), job("b", 2))
    result.feed(after_ms=61_000)
    return result


def test_a_move_to_free_gpus_is_allowed(pool: Lane) -> None:
    assert judged(pool, proposal(pool, ("a", [slot("n2", 0, 1)]))) == ["a"]
    assert pool.free("n2") == [1000] * 4, "the board is as before"


@pytest.mark.parametrize(
    "slots",
    [
        [slot("n1", 2, 3)],
        [slot("n9", 0, 1)],
        [slot("n2", 3, 4)],
        [slot("n2", 0)],
        [slot("n2", 0, 0)],
        [slot("n2", 0, 1), slot("n2", 2, 3)],
        [],
        [Slot("n2", (0, 1), 1000, 0, 0)],
    ],
    ids=["taken", "no_node", "no_gpu", "too_few", "twice", "two_workers", "none", "no_cpu"],
)
def test_a_move_that_breaks_a_rule_is_not(pool: Lane, slots: list[Slot]) -> None:
    assert judged(pool, proposal(pool, ("a", slots))) == []


def test_two_do_not_get_the_same_gpus_nor_those_that_the_other_gives_up(pool: Lane) -> None:
    both = [slot("n2", 0, 1)]
    assert judged(pool, proposal(pool, ("a", both), ("b", both))) == ["a"]
    swap = proposal(pool, ("a", [slot("n2", 0, 1)]), ("b", [slot("n1", 0, 1)]))
    assert judged(pool, swap) == ["a"]


def test_no_job_migrates_twice_or_while_the_plan_stops_it(pool: Lane) -> None:
    plan = proposal(pool, ("a", [slot("n2", 0, 1)]), ("a", [slot("n2", 2, 3)]))
    assert judged(pool, plan) == ["a"]
    plan.evictions.append(Eviction(pool.job("a"), pool.job("b"), 0.0))
    assert judged(pool, plan) == []


@pytest.mark.parametrize(
    "spec",
    [{"guaranteed_s": 1e6}, {"preemptible": False}, {}],
    ids=["guaranteed", "never", "young"],
)
def test_a_protected_job_is_not_moved(spec: dict[str, Any]) -> None:
    pool = lane("n1", "n2", min_residency_s=60.0)
    pool.run(job("a", 2, **spec))
    pool.feed(after_ms=61_000 if spec else 59_000)
    assert judged(pool, proposal(pool, ("a", [slot("n2", 0, 1)]))) == []


def test_a_round_moves_a_few_at_most() -> None:
    pool = lane("n1", "n2", gpus=8, min_residency_s=0.0)
    names = [f"j{n}" for n in range(8)]
    pool.run(*(job(name, 1) for name in names))
    plan = proposal(pool, *((name, [slot("n2", n)]) for n, name in enumerate(names)))
    assert judged(pool, plan) == names[:MIGRATIONS_PER_ROUND]
