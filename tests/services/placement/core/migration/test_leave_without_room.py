"""Plans that placement turns down: why, and which of them wait for room before the queue."""

from __future__ import annotations

import pytest

from shared.contracts.attempts import JobMigrated
from shared.contracts.base import Event
from shared.contracts.mitigation import (
    LevelName,
    MitigationApplied,
    MitigationCleared,
    MitigationTurnedDown,
)
from shared.contracts.nodes import DrainNode, NodeCordoned
from shared.contracts.placement import JobPlaced
from tests.services.placement.core.lane import Lane, job, kinds, lane, only

PLAN = "j/1/migrate/1"


def full(*, release: int = 1) -> Lane:
    """Return a full pool: a gang on `a` and `b`, another job on `c`, and one that waits."""
    pool = lane("a", "b", "c", release=release, mitigation="approve")
    pool.run(job("j", 8, workers=2), job("x", 8))
    pool.submit(job("next", 8))
    assert pool.job("next").phase == "waiting"
    return pool


def apply(
    pool: Lane, *nodes: str, level: LevelName = "migrate", cordons: bool = False, attempt: int = 1
) -> list[Event]:
    message = MitigationApplied(
        plan_id=PLAN,
        job_id="j",
        attempt=attempt,
        level=level,
        actor="berth",
        node_ids=nodes,
        cordons=cordons,
    )
    return pool.feed(pool.an("failslow", message))


def end_of_plan(pool: Lane, plan_id: str = PLAN) -> list[Event]:
    message = MitigationCleared(plan_id=plan_id, job_id="j", reason="recovered")
    return pool.feed(pool.an("failslow", message))


def a_node_is_freed(pool: Lane) -> list[Event]:
    """End the job on the third node, and run the round that is due then, if one is."""
    events = pool.exited("x")
    return [*events, *pool.wake()] if pool.decider.next_wake(pool.state) is not None else events


def test_a_plan_without_room_says_so_once_and_waits() -> None:
    pool = full()
    slow = pool.nodes_of("j")[0]
    (event,) = apply(pool, slow)
    assert isinstance(event, MitigationTurnedDown)
    assert (event.plan_id, event.reason, event.waits) == (PLAN, "no_room", True)
    assert apply(pool, slow) == [], "another try says nothing new"


def test_the_gang_leaves_before_the_queue_as_soon_as_a_node_is_free() -> None:
    pool = full()
    slow = pool.nodes_of("j")[0]
    apply(pool, slow)
    events = a_node_is_freed(pool)
    (migrated,) = only(JobMigrated, events)
    assert (migrated.reason, migrated.attempt) == ("slow_node", 1)
    assert "c" in migrated.to_nodes and slow not in migrated.to_nodes
    assert only(JobPlaced, events) == []
    assert not pool.state.waiting_plans
    pool.stopped("j")
    pool.wake()
    assert pool.nodes_of("next") == (slow,), "the queued job takes the node that the gang has left"
    assert pool.job("j").attempt == 2 and pool.job("j").phase == "placed"


def test_an_automatic_plan_cordons_the_node_when_the_gang_leaves() -> None:
    pool = full()
    slow = pool.nodes_of("j")[0]
    assert kinds(apply(pool, slow, cordons=True)) == ["MitigationTurnedDown"]
    assert pool.state.cordons == {}
    events = a_node_is_freed(pool)
    assert [event.node_id for event in only(NodeCordoned, events)] == [slow]
    assert len(only(JobMigrated, events)) == 1


def test_it_leaves_for_a_free_node_without_a_queue_too() -> None:
    pool = full()
    pool.cancel("next")
    apply(pool, pool.nodes_of("j")[0])
    assert len(only(JobMigrated, a_node_is_freed(pool))) == 1


def test_a_plan_that_is_over_waits_no_longer() -> None:
    pool = full()
    apply(pool, pool.nodes_of("j")[0])
    assert end_of_plan(pool, "another") == []
    (event,) = end_of_plan(pool)
    assert isinstance(event, MitigationTurnedDown)
    assert (event.reason, event.waits) == ("over", False)
    events = a_node_is_freed(pool)
    assert [event.job_id for event in only(JobPlaced, events)] == ["next"]


def test_without_mitigation_no_gang_leaves_any_more() -> None:
    pool = full()
    apply(pool, pool.nodes_of("j")[0])
    pool.pool(release=1, mitigation="off")
    assert only(JobMigrated, a_node_is_freed(pool)) == []
    assert pool.job("next").phase == "placed"


def test_a_job_that_ends_has_no_plan_that_waits() -> None:
    pool = full()
    apply(pool, pool.nodes_of("j")[0])
    pool.exited("j")
    assert not pool.state.waiting_plans
    assert end_of_plan(pool) == []


def test_other_plans_are_turned_down_with_their_reason_for_good() -> None:
    def reason(pool: Lane, *nodes: str, level: LevelName = "migrate", attempt: int = 1) -> str:
        (event,) = apply(pool, *nodes, level=level, attempt=attempt)
        assert isinstance(event, MitigationTurnedDown) and not event.waits
        return event.reason

    pool = lane("a", "b", "c", release=1)
    pool.run(job("j", 8, workers=2))
    (elsewhere,) = {"a", "b", "c"} - set(pool.nodes_of("j"))
    assert reason(pool, elsewhere) == "not_there"
    assert reason(pool, "a", attempt=2) == "not_running"
    assert reason(pool, "a", level="restart") == "no_checkpoints"
    pool = lane("a", "b", release=1)
    pool.run(job("j", 8, workers=2, checkpoint_interval_s=60))
    pool.feed(pool.an("commands", DrainNode(node_id="b", reason="repair")))
    assert reason(pool, "a", level="restart") in ("node_cordoned", "not_running")


@pytest.mark.parametrize("level", ["migrate", "restart"])
def test_before_the_upgrade_is_finished_nothing_is_recorded(level: LevelName) -> None:
    pool = full(release=0)
    assert apply(pool, pool.nodes_of("j")[0], level=level) == []
