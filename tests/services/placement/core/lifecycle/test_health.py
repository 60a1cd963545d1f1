"""Nodes that fail-slow suspects: used last among equals, and not forgotten with their job."""

from __future__ import annotations

import pickle

import pytest

from services.placement.core.lifecycle.health import HISTORY_S, LARGEST_SLOWDOWN, MEMORY_S
from services.placement.core.pool.state import Pool
from shared.contracts.base import Event
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected
from shared.contracts.mitigation import NodeHealthScored
from shared.contracts.nodes import TENANTS_FROM, NodeHealthNoted
from tests.services.placement.core.lane import TRACE, Lane, job, kinds, lane


def suspect(
    pool: Lane, node: str, slowdown: float = 2.0, fault: str = "", gpu: int | None = None
) -> list[Event]:
    fault_id = fault or f"j/1/{gpu or 0}/{node}"
    result = FaultSuspected(
        fault_id=fault_id,
        job_id="j",
        node_id=node,
        allocation_id="x",
        slowdown=slowdown,
        iteration_s=slowdown,
        peers_s=1,
        score=9,
        reports=3,
        gpu=gpu,
    )
    return pool.feed(pool.an("failslow", result))


def clear(pool: Lane, node: str, reason: str, fault: str = "", tenant: str = "") -> list[Event]:
    fault_id = fault or f"j/1/0/{node}"
    result = FaultCleared(fault_id=fault_id, job_id="j", tenant=tenant, node_id=node, reason=reason)
    return pool.feed(pool.an("failslow", result))


def dismiss(pool: Lane, node: str, false_alarm: bool) -> list[Event]:
    result = FaultDismissed(fault_id=f"j/1/0/{node}", node_id=node, false_alarm=false_alarm)
    return pool.feed(pool.an("failslow", result))


def test_a_suspicion_is_restated_with_the_health_of_its_node() -> None:
    pool = lane("n1", "n2")
    assert suspect(pool, "n1", 2.5) == [
        NodeHealthNoted(node_id="n1", fault_id="j/1/0/n1", slowdown=2.5, health=0.4)
    ]
    assert (pool.state.board.health("n1"), pool.state.board.health("n2")) == (0.4, 1.0)


def test_a_job_that_reports_huge_times_makes_its_node_ten_times_as_slow_at_most() -> None:
    pool = lane("n1")
    suspect(pool, "n1", 1e15)
    assert pool.state.board.health("n1") == 1 / LARGEST_SLOWDOWN


def gpus_of(pool: Lane, job_id: str, gpus: int) -> tuple[int, ...]:
    """Return the GPUs that a job of one worker gets."""
    pool.submit(job(job_id, gpus=gpus))
    (allocation,) = pool.job(job_id).allocations.values()
    return allocation.slot.gpus


def test_a_slow_gpu_of_a_node_is_given_last() -> None:
    pool = lane("n1", gpus=4)
    suspect(pool, "n1", 2.0, gpu=0)
    suspect(pool, "n1", 4.0, gpu=2)
    assert [gpus_of(pool, name, 1) for name in "abcd"] == [(1,), (3,), (0,), (2,)]


def test_a_gpu_that_recovered_is_given_as_before() -> None:
    pool = lane("n1", gpus=4)
    suspect(pool, "n1", gpu=0)
    clear(pool, "n1", "recovered", "j/1/0/n1")
    assert gpus_of(pool, "a", 2) == (0, 1)


def test_the_history_of_a_gpu_is_its_own_and_outlasts_a_new_life_of_the_node() -> None:
    pool = lane("n1", gpus=4)
    result = NodeHealthScored(
        node_id="n1", score=0.5, faults=1, false_alarms=0, fault_id="f", gpu=0
    )
    pool.feed(pool.an("failslow", result))
    assert pool.state.board.slow["n1"] == {"history/n1/0": pytest.approx(1.1)}
    pool.node("n1", gpus=4)
    assert pool.state.board.nodes["n1"].slow_gpus == {0: pytest.approx(1.1)}
    again: Pool = pickle.loads(pickle.dumps(pool.state))
    assert again.board.nodes["n1"].slow_gpus == pool.state.board.nodes["n1"].slow_gpus


def test_the_worst_of_several_suspicions_counts() -> None:
    pool = lane("n1")
    suspect(pool, "n1", 4, "a")
    suspect(pool, "n1", 2, "b")
    assert pool.state.board.health("n1") == 0.25
    clear(pool, "n1", "recovered", "a")
    assert pool.state.board.health("n1") == 0.5


def test_of_nodes_with_as_many_free_gpus_the_healthy_one_is_taken() -> None:
    pool = lane("n1", "n2", "n3")
    suspect(pool, "n1", 3)
    suspect(pool, "n2", 2)
    for name in "abc":
        pool.submit(job(name, 8))
    assert [pool.nodes_of(name) for name in "abc"] == [("n3",), ("n2",), ("n1",)]


def test_a_gang_over_several_nodes_takes_the_healthy_ones() -> None:
    pool = lane("n1", "n2", "n3")
    suspect(pool, "n1")
    pool.submit(job("a", 8, workers=2))
    assert pool.nodes_of("a") == ("n2", "n3")


def test_a_share_goes_to_the_healthy_one_of_gpus_that_are_as_full() -> None:
    pool = lane("n1", "n2", gpus=1)
    pool.submit(job("a", 0.5), job("b", 0.6))
    assert pool.nodes_of("b") == ("n2",)
    pool.submit(job("c", 0.1))
    assert pool.nodes_of("c") == ("n2",), "the fullest"
    pool = lane("n1", "n2", gpus=1)
    suspect(pool, "n1")
    pool.submit(job("a", 0.6), job("b", 0.6))
    assert (pool.nodes_of("a"), pool.nodes_of("b")) == (("n2",), ("n1",))
    pool.submit(job("c", 0.1), job("d", 0.4))
    assert (pool.nodes_of("c"), pool.nodes_of("d")) == (("n2",), ("n1",))


def test_where_all_are_as_healthy_as_each_other_the_order_is_as_ever() -> None:
    pool = lane("n1", "n2")
    suspect(pool, "n1")
    suspect(pool, "n2")
    pool.submit(job("a", 1))
    assert pool.nodes_of("a") == ("n1",)


@pytest.mark.parametrize("false_alarm", [True, False])
def test_a_dismissed_suspicion_is_none(false_alarm: bool) -> None:
    pool = lane("n1")
    suspect(pool, "n1")
    dismiss(pool, "n1", false_alarm)
    assert pool.state.board.health("n1") == 1
    assert not pool.state.board.slow


def test_the_end_of_the_job_that_suffered_proves_nothing_for_an_hour() -> None:
    pool = lane("n1", time_scale=60.0)
    suspect(pool, "n1")
    (events,) = clear(pool, "n1", "job_ended")
    assert isinstance(events, NodeHealthNoted)
    assert events.until == pool.now + MEMORY_S * 1000 / 60
    assert pool.state.board.health("n1") == 0.5
    assert kinds(pool.wake()) == ["NodeHealthNoted"]
    assert pool.state.board.health("n1") == 1
    assert pool.decider.next_wake(pool.state) is None


@pytest.mark.parametrize(("share", "most"), [(0.0, 1), (0.1, 1), (0.5, 2), (1.0, 4)])
def test_the_ended_jobs_of_one_tenant_leave_few_nodes_suspect(share: float, most: int) -> None:
    """Of eight nodes; those of another tenant, and those that time has forgotten, do not count."""
    names = [f"n{number}" for number in range(8)]
    pool = lane(*names, mitigation_share=share, release=TENANTS_FROM)
    for name in names[:-1]:
        suspect(pool, name)
        clear(pool, name, "job_ended", tenant="acme")
    assert sorted(pool.state.board.slow) == names[:most]
    suspect(pool, names[-1])
    clear(pool, names[-1], "job_ended", tenant="zeta")
    assert sorted(pool.state.board.slow) == [*names[:most], names[-1]]
    pool.now += round(MEMORY_S * 1000)
    pool.wake()
    assert not pool.state.board.slow
    suspect(pool, "n0")
    (noted,) = clear(pool, "n0", "job_ended", tenant="acme")
    assert isinstance(noted, NodeHealthNoted)
    assert (noted.tenant, noted.until) == ("acme", pool.now + MEMORY_S * 1000)


def test_a_pool_that_is_not_upgraded_names_no_tenant() -> None:
    pool = lane("n1", release=TENANTS_FROM - 1)
    suspect(pool, "n1")
    (noted,) = clear(pool, "n1", "job_ended", tenant="acme")
    assert isinstance(noted, NodeHealthNoted) and noted.tenant == ""


def test_peers_that_see_it_recovered_end_older_suspicions_too() -> None:
    pool = lane("n1")
    suspect(pool, "n1", 2, "old")
    clear(pool, "n1", "job_ended", "old")
    suspect(pool, "n1", 3, "new")
    assert len(clear(pool, "n1", "recovered", "new")) == 2
    assert pool.state.board.health("n1") == 1
    assert pool.decider.next_wake(pool.state) is None


def test_what_was_never_noted_is_not_cleared() -> None:
    pool = lane("n1")
    assert clear(pool, "n1", "recovered") == clear(pool, "n1", "job_ended") == []
    assert dismiss(pool, "n1", True) == suspect(pool, "n9") == []


def test_a_snapshot_and_a_replay_know_it_too() -> None:
    pool = lane("n1", "n2")
    suspect(pool, "n1")
    clear(pool, "n1", "job_ended")
    suspect(pool, "n2")
    again = Pool(0)
    for fact in pool.facts:
        pool.decider.evolve(again, fact)
    assert again == pool.state == pickle.loads(pickle.dumps(pool.state))


def test_the_rack_is_the_label_or_else_what_the_agent_reported() -> None:
    pool = lane()
    pool.node("n1", rack="r1")
    pool.node("n2", rack="r1", labels={"rack": "r2"})
    pool.node("n3")
    assert [pool.state.board.rack(name) for name in ("n1", "n2", "n3")] == ["r1", "r2", ""]


def test_what_is_noted_of_a_node_has_the_trace_of_the_verdict() -> None:
    pool = lane("n1")
    suspect(pool, "n1")
    assert pool.facts[-1].traceparent == TRACE


def score(pool: Lane, node: str, value: float) -> list[Event]:
    message = NodeHealthScored(node_id=node, score=value, faults=1, false_alarms=0, fault_id="f")
    return pool.feed(pool.an("failslow", message))


def test_a_history_of_faults_makes_a_node_the_last_among_equals() -> None:
    pool = lane("n1", "n2", gpus=8)
    score(pool, "n1", 0.5)
    assert pool.state.board.health("n1") == pytest.approx(1 / 1.1)
    pool.run(job("j", 8))
    assert pool.job("j").nodes == ("n2",)


def test_a_history_is_forgotten_after_a_half_life_or_by_a_healthy_score() -> None:
    pool = lane("n1", "n2")
    (noted,) = score(pool, "n1", 0.5)
    assert isinstance(noted, NodeHealthNoted)
    assert noted.until == pool.now + HISTORY_S * 1000
    score(pool, "n1", 1.0)
    assert pool.state.board.health("n1") == 1
    assert score(pool, "n1", 1.0) == []
    assert score(pool, "unknown", 0.5) == []


def test_a_recovery_ends_no_history() -> None:
    pool = lane("n1", "n2")
    score(pool, "n1", 0.5)
    suspect(pool, "n1")
    clear(pool, "n1", "recovered")
    assert pool.state.board.health("n1") == pytest.approx(1 / 1.1)
