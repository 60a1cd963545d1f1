"""A job leaves its slow nodes by an approved plan, if there is room elsewhere."""

from __future__ import annotations

from services.placement.core.migration.leave import leave_slow_nodes, room_without
from services.placement.core.pool.allocations import slots_by_rank
from shared.contracts.attempts import JobMigrated
from shared.contracts.base import Event
from shared.contracts.faults import FaultDismissed
from shared.contracts.mitigation import LevelName, MitigationApplied
from shared.contracts.nodes import DrainNode, NodeCordoned, NodeUncordoned
from tests.harness.decider import an_input
from tests.services.placement.core.lane import Lane, job, kinds, lane
from tests.services.placement.core.test_node_problems import reported


def gang(*nodes: str) -> Lane:
    """Return a pool with a running gang of two workers of 8 GPUs on the first two nodes."""
    pool = lane(*nodes)
    pool.run(job("j", 8, workers=2))
    return pool


def applied(pool: Lane, *nodes: str, level: LevelName = "migrate", attempt: int = 1) -> list[Event]:
    message = MitigationApplied(
        plan_id="j/1/migrate/1",
        job_id="j",
        attempt=attempt,
        level=level,
        actor="berth",
        node_ids=nodes,
    )
    item = an_input(message, "failslow")
    return [decision.event for decision in leave_slow_nodes(pool.state, message, item, pool.now)]


def test_only_the_worker_on_the_slow_node_moves() -> None:
    pool = gang("a", "b", "c")
    before = [slot.node_id for slot in slots_by_rank(pool.job("j"))]
    (event,) = applied(pool, "a")
    assert isinstance(event, JobMigrated)
    assert event.reason == "slow_node"
    after = [allocation.node_id for allocation in event.target]
    assert after == ["c" if node == "a" else node for node in before]


def test_a_gang_leaves_for_gpus_of_the_types_that_it_has() -> None:
    pool = gang("a", "b")
    pool.node("c", gpu_type="l40s")
    assert applied(pool, "a") == []
    pool.node("d")
    (event,) = applied(pool, "a")
    assert isinstance(event, JobMigrated) and "d" in event.to_nodes


def test_without_room_elsewhere_the_job_stays() -> None:
    pool = gang("a", "b")
    assert applied(pool, "a") == []
    assert room_without(pool.state, pool.job("j"), ("a",), pool.now) == []


def test_other_levels_attempts_and_nodes_have_no_effect() -> None:
    pool = gang("a", "b", "c")
    assert applied(pool, "a", level="redistribute") == []
    assert applied(pool, "a", attempt=2) == []
    assert applied(pool, "c") == []


def restarts(pool: Lane) -> list[Event]:
    return applied(pool, "a", level="restart")


def test_a_plan_to_restart_stops_the_job_and_starts_it_on_its_own_slots() -> None:
    pool = lane("a", "b", "c")
    pool.run(job("j", 8, workers=2, checkpoint_interval_s=60))
    before, nodes = slots_by_rank(pool.job("j")), pool.nodes_of("j")
    message = MitigationApplied(
        plan_id="j/1/restart/1",
        job_id="j",
        attempt=1,
        level="restart",
        actor="berth",
        node_ids=nodes[:1],
    )
    (event,) = pool.feed(pool.an("failslow", message))
    assert isinstance(event, JobMigrated)
    assert (event.reason, event.from_nodes, event.to_nodes) == ("restart", nodes, nodes)
    assert pool.job("j").avoid == ()
    assert restarts(pool) == [], "it stops already"
    pool.stopped("j")
    pool.wake()
    assert (pool.job("j").attempt, slots_by_rank(pool.job("j"))) == (2, before)


def test_without_checkpoints_or_with_a_cordoned_node_a_job_is_not_restarted() -> None:
    assert restarts(gang("a", "b")) == []
    pool = lane("a", "b")
    pool.run(job("j", 8, workers=2, checkpoint_interval_s=60))
    pool.feed(pool.an("commands", DrainNode(node_id="b", reason="repair")))
    assert restarts(pool) == []


def test_a_plan_to_measure_moves_nothing_and_cordons_by_its_verdict() -> None:
    pool = gang("a", "b", "c")
    assert applied(pool, "a", level="validate") == []
    message = MitigationApplied(
        plan_id="j/1/validate/1",
        job_id="j",
        attempt=1,
        level="validate",
        actor="berth",
        node_ids=("a",),
        by="automatic",
        cordons=True,
    )
    (cordoned,) = pool.feed(pool.an("failslow", message))
    assert isinstance(cordoned, NodeCordoned) and cordoned.node_id == "a"
    assert pool.job("j").phase == "running"


def automatic(pool: Lane, *nodes: str) -> list[Event]:
    message = MitigationApplied(
        plan_id="j/1/migrate/1",
        job_id="j",
        attempt=1,
        level="migrate",
        actor="berth",
        node_ids=nodes,
        fault_ids=("j/1/0/1",),
        by="automatic",
        cordons=True,
    )
    return pool.feed(pool.an("failslow", message))


def test_an_automatic_plan_cordons_the_node_that_the_job_leaves() -> None:
    pool = gang("a", "b", "c")
    cordoned, migrated = automatic(pool, "a")
    assert cordoned == NodeCordoned(
        node_id="a", reason="slow: plan j/1/migrate/1", fault_ids=("j/1/0/1",)
    )
    assert isinstance(migrated, JobMigrated)
    assert pool.job("j").avoid == ("a",)
    assert pool.state.cordons == {"a": False}


def test_a_node_that_the_job_cannot_leave_is_not_cordoned() -> None:
    pool = gang("a", "b")
    assert automatic(pool, "a") == []


def test_the_cordon_ends_when_the_suspicion_is_dismissed() -> None:
    pool = gang("a", "b", "c")
    automatic(pool, "a")
    other = FaultDismissed(fault_id="j/1/1/1", node_id="a", false_alarm=True)
    assert pool.feed(pool.an("failslow", other)) == []
    alarm = FaultDismissed(fault_id="j/1/0/1", node_id="a", false_alarm=True)
    assert pool.feed(pool.an("failslow", alarm)) == [NodeUncordoned(node_id="a")]
    assert not pool.state.cordoned_for


def test_the_cordon_of_a_plan_outlasts_that_of_a_rule() -> None:
    pool = lane("a", "b", "c", release=1, mitigation="approve")
    pool.run(job("j", 8, workers=2))
    reported(pool, "inventory_differs", True, node_id="a")
    cordoned, _ = automatic(pool, "a")
    assert isinstance(cordoned, NodeCordoned) and not cordoned.until_joined
    assert kinds(reported(pool, "inventory_differs", False, node_id="a")) == ["NodeProblemNoted"]
    assert pool.state.cordons == {"a": False}


def test_the_cordon_of_an_operator_outlasts_the_suspicion() -> None:
    pool = gang("a", "b", "c")
    automatic(pool, "a")
    pool.feed(pool.an("commands", DrainNode(node_id="a", reason="repair")))
    alarm = FaultDismissed(fault_id="j/1/0/1", node_id="a", false_alarm=False)
    assert pool.feed(pool.an("failslow", alarm)) == []
