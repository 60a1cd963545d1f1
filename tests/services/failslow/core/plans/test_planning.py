"""Plans are made when they are due, approved once, and end with the faults that they help."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.plans.planning import due_at
from services.failslow.core.state import FailSlowState
from shared.contracts.attempts import JobSucceeded
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.faults import FaultSuspected, MarkFalseAlarm
from shared.contracts.mitigation import (
    GPU_HEALTH_FROM,
    ApproveMitigation,
    MitigationApplied,
    MitigationCleared,
    MitigationPlanned,
    NodeHealthScored,
)
from shared.contracts.reports import WorkersIterated
from tests.harness.decider import AT, an_input, given, run, wake
from tests.services.failslow.gangs import POOL, iterated, placed, times

FAILSLOW = FailSlow()
HEALTHY, SLOW = [1.0] * 3, [1.5] * 3


def slow_gang(microbatches: int | None = None) -> FailSlowState:
    """Each worker is a data-parallel group, of so many micro-batches if it reports them."""
    state = given(FAILSLOW, POOL)
    run(FAILSLOW, state, [placed("j1", workers=4)])
    rows = times([HEALTHY, HEALTHY, SLOW, HEALTHY], own=True)
    shaped = tuple(
        row.model_copy(update={"layout": {"dp": row.rank}, "microbatches": microbatches})
        for row in rows
    )
    run(FAILSLOW, state, [an_input(WorkersIterated(times=shaped), "local")])
    return state


def planned(state: FailSlowState) -> MitigationPlanned:
    due = due_at(state)
    assert due is not None
    (event,) = wake(FAILSLOW, state, due)
    assert isinstance(event, MitigationPlanned)
    return event


def test_without_faults_nothing_is_due() -> None:
    assert FAILSLOW.next_wake(given(FAILSLOW, POOL)) is None


def test_a_plan_has_level_nodes_loss_and_evidence() -> None:
    plan = planned(slow_gang())
    assert plan.plan_id == "j1/1/redistribute/1"
    assert (plan.level, plan.actor, plan.node_ids) == ("redistribute", "framework", ("n2",))
    assert plan.accumulated_loss_s >= plan.cost_s == 5
    assert plan.evidence[0] == "1 open faults, the worst 50% slower (compute)"


def test_no_plan_is_made_before_it_is_due() -> None:
    state = slow_gang()
    due = due_at(state)
    assert due is not None and due > AT
    assert run(FAILSLOW, state, [], due - 1) == []


def test_the_wake_moves_on_with_each_plan() -> None:
    """A lane that stays due without a decision would spin."""
    state = slow_gang()
    levels = [planned(state).level, planned(state).level]
    assert levels == ["redistribute", "migrate"]
    assert FAILSLOW.next_wake(state) is None


def test_the_advice_divides_the_micro_batches_that_the_gang_reports() -> None:
    state = slow_gang(microbatches=16)
    plan = planned(state)
    assert (plan.level, plan.microbatches) == ("redistribute", (18, 18, 11, 17))
    assert plan.remaining == 0.125


def test_an_approved_plan_is_applied_once() -> None:
    state = slow_gang()
    plan_id = planned(state).plan_id
    approve = ApproveMitigation(plan_id=plan_id, reason="go")
    accepted, applied, _ = run(FAILSLOW, state, [an_input(approve, "commands")])
    assert isinstance(accepted, CommandAccepted)
    assert isinstance(applied, MitigationApplied)
    assert (applied.level, applied.node_ids, applied.reason) == ("redistribute", ("n2",), "go")
    (refused,) = run(FAILSLOW, state, [an_input(approve, "commands")])
    assert isinstance(refused, CommandRefused)
    assert refused.reason == "already_applied"


@pytest.mark.parametrize("plan_id", ["", "j9/1/migrate/1"])
def test_an_unknown_plan_is_refused(plan_id: str) -> None:
    command = ApproveMitigation(plan_id=plan_id)
    (refused,) = run(FAILSLOW, slow_gang(), [an_input(command, "commands")])
    assert isinstance(refused, CommandRefused)
    assert refused.reason == "unknown_plan"


def test_a_recovery_ends_the_plan() -> None:
    state = slow_gang()
    plan_id = planned(state).plan_id
    events = run(FAILSLOW, state, [iterated(*[HEALTHY] * 4)])
    assert (
        MitigationCleared(plan_id=plan_id, job_id="j1", tenant="acme", reason="recovered") in events
    )
    assert not state.mitigation.plans
    assert FAILSLOW.next_wake(state) is None


def test_the_end_of_the_job_ends_the_plan() -> None:
    state = slow_gang()
    planned(state)
    done = JobSucceeded(job_id="j1", tenant="acme", attempt=1)
    events = run(FAILSLOW, state, [an_input(done, "placement")])
    assert [e.reason for e in events if isinstance(e, MitigationCleared)] == ["job_ended"]
    assert not state.mitigation.episodes


def test_a_suspicion_that_names_a_gpu_lowers_its_health_beside_that_of_the_node() -> None:
    state = given(FAILSLOW, POOL.model_copy(update={"release": GPU_HEALTH_FROM}))
    run(FAILSLOW, state, [placed("j1", gpu=5)])
    events = run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    assert [event.gpu for event in events if isinstance(event, FaultSuspected)] == [5]
    scored = [event for event in events if isinstance(event, NodeHealthScored)]
    assert [(event.node_id, event.gpu) for event in scored] == [("n2", None), ("n2", 5)]
    assert scored[0].score == scored[1].score < 1
    command = an_input(MarkFalseAlarm(fault_id="j1/1/2/1"), "commands")
    events = run(FAILSLOW, state, [command])
    scored = [event for event in events if isinstance(event, NodeHealthScored)]
    assert [(event.gpu, event.score) for event in scored] == [(None, 1.0), (5, 1.0)]


def test_the_health_of_a_node_is_published_and_taken_back() -> None:
    state = given(FAILSLOW, POOL)
    run(FAILSLOW, state, [placed("j1", workers=4)])
    _, score = run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    assert isinstance(score, NodeHealthScored)
    assert score.node_id == "n2"
    assert score.score == pytest.approx(1 / 1.5)
    alarm = MarkFalseAlarm(fault_id=score.fault_id)
    events = run(FAILSLOW, state, [an_input(alarm, "commands")])
    scores = [event for event in events if isinstance(event, NodeHealthScored)]
    assert [(event.score, event.false_alarms) for event in scores] == [(1, 1)]
