"""Nodes come and go; no job may be lost by it, and none may run twice."""

from __future__ import annotations

import pickle

from services.executor.core.virtual.effects import PrepareWorker, StopWorker, WorkerEnded
from services.executor.core.virtual.membership import (
    configure,
    leave,
    register_again,
    rejoin,
    resume,
    take_over,
)
from services.executor.core.virtual.state import ExecutorState
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import NodeLeaving, NodeRegistered, NodeTermsReported, WorkerStopped
from tests.services.executor.facts import (
    Script,
    a_lane,
    a_node,
    enqueued,
    joined,
    placed,
    released,
    sent_reports,
    started,
)


def lost(node: str, incarnation: str, reason: str = "silent") -> NodeLost:
    return NodeLost.model_validate({"node_id": node, "incarnation": incarnation, "reason": reason})


def test_workers_of_an_earlier_incarnation_are_reported_stopped_after_the_registration() -> None:
    script = Script(a_lane()).given(
        joined(a_node(), "old"), enqueued(), placed("j1", ("n1", 0)), started()
    )
    reports = sent_reports(take_over(script.lane, "boot"))
    assert [type(r) for r in reports] == [NodeRegistered, WorkerStopped]


def test_a_worker_released_after_the_snapshot_is_not_reported_again() -> None:
    script = Script(a_lane()).at_work()
    first, second = script.running("j1", ("n1", 0), ("n1", 1))
    script.when(released("j1", second))
    again: ExecutorState = pickle.loads(pickle.dumps(script.lane))
    resume(again, a_lane())
    assert list(again.workers) == [first]
    Script(again).when(released("j1", first))
    assert [type(r) for r in sent_reports(take_over(again, "boot"))] == [NodeRegistered]


def test_a_worker_placed_on_an_earlier_incarnation_is_not_run() -> None:
    script = Script(a_lane()).given(joined(a_node(), "old"), enqueued())
    take_over(script.lane, "boot")
    (report,) = sent_reports(script.when(placed()))
    assert isinstance(report, WorkerStopped)
    script.when(joined(a_node(), "boot.0"))
    script.when(enqueued("j2"))
    assert isinstance(script.when(placed("j2", ("n1", 1)))[0], PrepareWorker)


def test_a_node_joins_only_where_the_pool_allows_its_backend() -> None:
    lane = a_lane(a_node("n1"))
    configure(lane, PoolConfigured(partition=0, pool="demo", backends=("agent",)))
    assert sent_reports(take_over(lane, "boot")) == []
    more = PoolConfigured(partition=0, pool="demo", backends=("virtual", "agent"))
    assert [getattr(r, "node_id", "") for r in sent_reports(configure(lane, more))] == ["n1"]


def test_a_lost_lease_stops_the_workers_and_joins_anew_once_they_are_gone() -> None:
    script = Script(a_lane(a_node("n1"), a_node("n2"))).at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    effects = rejoin(script.lane)
    assert effects[0] == StopWorker(allocation_id)
    assert [getattr(r, "node_id", "") for r in sent_reports(effects)] == ["n2"]
    script.when(enqueued("j2"))
    assert script.when(placed("j2", ("n1", 1))) == []
    (registered,) = sent_reports(script.on_outcome(WorkerEnded(allocation_id, 143)))
    assert isinstance(registered, NodeRegistered) and registered.node_id == "n1"
    assert registered.incarnation not in ("boot.0", "")
    assert rejoin(a_lane()) == []


def test_a_node_declared_silent_stops_its_workers_and_joins_anew() -> None:
    script = Script(a_lane(a_node("n1"), a_node("n2"))).at_work()
    (one,) = script.running("j1", ("n1", 0))
    script.running("j2", ("n2", 0))
    assert script.when(lost("n1", "boot.0")) == [StopWorker(one)], "its GPUs are free already"
    assert [
        getattr(r, "node_id", "") for r in sent_reports(script.on_outcome(WorkerEnded(one, 0)))
    ] == ["n1"]
    assert "n2" in script.lane.own_incarnations


def test_a_node_that_an_operator_gave_up_stops_its_workers() -> None:
    script = Script(a_lane()).at_work()
    script.when(PoolConfigured(partition=0, pool="demo", lease_s=2.0))
    (one,) = script.running("j1", ("n1", 0))
    assert script.when(lost("n1", "boot.0", "declared")) == [StopWorker(one)]


def test_each_registration_has_a_higher_generation_and_proves_the_machine() -> None:
    script = Script(a_lane()).given(
        NodeJoined.model_validate({**dict(joined(a_node(), "old")), "generation": 7})
    )
    (first,) = sent_reports(take_over(script.lane, "boot"))
    (second,) = sent_reports(rejoin(script.lane))
    assert isinstance(first, NodeRegistered) and isinstance(second, NodeRegistered)
    assert (first.generation, second.generation) == (8, 9)
    assert first.boot_id == second.boot_id == "boot"
    other = a_lane()
    (later,) = sent_reports(take_over(other, "boot2"))
    assert isinstance(later, NodeRegistered)
    assert later.boot_id != first.boot_id and later.hardware == first.hardware != ""


def test_a_registration_that_was_overtaken_is_sent_again_with_a_higher_generation() -> None:
    script = Script(a_lane())
    (first,) = sent_reports(take_over(script.lane, "boot"))
    assert isinstance(first, NodeRegistered) and first.generation == 1
    other = NodeJoined.model_validate({**dict(joined(a_node(), "rival")), "generation": 1})
    (again,) = sent_reports(script.when(other))
    assert isinstance(again, NodeRegistered) and again.generation == 2


def test_new_terms_of_the_ledger_are_applied_and_reported_at_once() -> None:
    script = Script(a_lane()).at_work()
    script.when(PoolConfigured(partition=0, pool="demo", lease_s=9.0))
    assert script.lane.lease_s == 9.0
    (report,) = sent_reports(script.when(PoolConfigured(partition=0, pool="demo", lease_s=3.0)))
    assert isinstance(report, NodeTermsReported) and report.incarnation == "boot.0"
    assert script.lane.terms and report.terms_id == script.lane.terms.in_executor.terms_id
    configure(script.lane, PoolConfigured(partition=0, pool="demo", lease_s=60.0))
    assert script.lane.lease_s == 3.0, "access may be ahead of what placement counts with"


def test_a_node_that_joined_under_older_terms_reports_the_present_ones() -> None:
    script = Script(a_lane()).given(PoolConfigured(partition=0, pool="demo", lease_s=9.0))
    take_over(script.lane, "boot")
    older = joined(a_node(), "boot.0").model_copy(update={"terms_id": "0.0"})
    (report,) = sent_reports(script.when(older))
    assert isinstance(report, NodeTermsReported)


def test_a_placement_that_knows_no_terms_gets_no_report_of_them() -> None:
    script = Script(a_lane()).given(PoolConfigured(partition=0, pool="demo", lease_s=9.0))
    take_over(script.lane, "boot")
    assert script.when(joined(a_node(), "boot.0")) == []


def test_leaving_is_reported_for_a_node_that_joins_anew_too() -> None:
    script = Script(a_lane()).at_work()
    script.running("j1", ("n1", 0))
    rejoin(script.lane)
    assert sent_reports(leave(script.lane)) == [NodeLeaving(node_id="n1", incarnation="boot.0")]


def test_the_loss_of_an_older_incarnation_has_no_effect() -> None:
    script = Script(a_lane()).at_work()
    script.running("j1", ("n1", 0))
    assert script.when(lost("n1", "older")) == []


def test_a_node_that_another_executor_took_over_is_given_up() -> None:
    script = Script(a_lane()).at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    assert script.when(lost("n1", "boot.0", "replaced")) == [StopWorker(allocation_id)]
    assert script.lane.usurped == {"n1"}
    script.when(joined(a_node(), "rival"))
    assert register_again(script.lane) == []
    script.when(enqueued("j2"))
    assert script.when(placed("j2", ("n1", 1))) == []


def test_a_node_is_registered_again_when_the_executor_that_took_it_is_lost() -> None:
    script = Script(a_lane()).at_work()
    script.when(lost("n1", "boot.0", "replaced"))
    script.when(joined(a_node(), "ghost"))
    reports = sent_reports(script.when(lost("n1", "ghost")))
    assert [getattr(r, "node_id", "") for r in reports] == ["n1"]
    assert script.lane.usurped == set()


def test_leaving_is_reported_before_the_workers_stop() -> None:
    script = Script(a_lane()).at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    effects = leave(script.lane)
    assert sent_reports(effects) == [NodeLeaving(node_id="n1", incarnation="boot.0")]
    assert effects[-1] == StopWorker(allocation_id)
    assert configure(script.lane, PoolConfigured(partition=0, pool="demo")) == []


def test_a_registration_is_repeated_until_the_ledger_shows_the_join() -> None:
    lane = a_lane()
    script = Script(lane)
    take_over(lane, "boot")
    assert [type(r) for r in sent_reports(register_again(lane))] == [NodeRegistered]
    script.when(joined(a_node(), "boot.0"))
    assert register_again(lane) == []
