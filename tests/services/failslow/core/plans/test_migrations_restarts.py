"""A gang that cannot leave its slow nodes is restarted where it is, once, when that has paid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.attempts import JobMigrated, JobRequeued, JobStarted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.mitigation import (
    MitigationApplied,
    MitigationCleared,
    MitigationPlanned,
    MitigationTurnedDown,
)
from shared.contracts.mitigation_account import (
    MitigationAccounted,
    MitigationCarriedOut,
    MitigationMeasured,
)
from shared.contracts.placement import Allocation
from shared.contracts.pools import PoolConfigured
from tests.harness.decider import AT, an_input, given, run, wake
from tests.services.failslow.core.plans.test_automation import AUTOMATIC, HEALTHY, SLOW
from tests.services.failslow.gangs import iterated, placed

FAILSLOW = FailSlow()
RELEASED = AUTOMATIC.model_copy(update={"release": 1})
TARGET = tuple(Allocation(rank=rank, node_id=f"n{rank}", gpus=(0,)) for rank in range(4))
WAKES = 40


def slow_gang(pool: PoolConfigured = RELEASED, *, preemptible: bool = True) -> FailSlowState:
    state = given(FAILSLOW, pool)
    run(FAILSLOW, state, [placed("j1", preemptible=preemptible)])
    run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    return state


def woken(state: FailSlowState) -> Iterator[tuple[int, Event]]:
    """Wake the lane as often as it is due, at cluster ms; placement finds no room for the job."""
    at = AT
    for _ in range(WAKES):
        due = FAILSLOW.next_wake(state)
        if due is None:
            return
        at = max(at, due)
        for event in wake(FAILSLOW, state, at):
            yield at, event
    raise AssertionError("the lane stays due")


def restarted(state: FailSlowState) -> list[Event]:
    """Return the decisions about a restart that placement carries out for the gang."""
    event = JobMigrated(
        job_id="j1",
        tenant="acme",
        attempt=1,
        reason="restart",
        from_nodes=("n0", "n1", "n2", "n3"),
        to_nodes=("n0", "n1", "n2", "n3"),
        target=TARGET,
        lost_work_s=30,
    )
    return run(FAILSLOW, state, [an_input(event, "placement")], AT + 900_000)


def applied_levels(events: list[tuple[int, Event]]) -> list[str]:
    return [event.level for _, event in events if isinstance(event, MitigationApplied)]


def test_it_follows_two_tries_to_migrate_once_the_loss_has_reached_its_cost() -> None:
    events = list(woken(slow_gang()))
    plans = [(at, event) for at, event in events if isinstance(event, MitigationPlanned)]
    assert [plan.level for _, plan in plans] == ["redistribute", "migrate", "restart"]
    at, plan = plans[-1]
    assert (plan.actor, plan.node_ids, plan.rule) == ("berth", ("n2",), "break even")
    assert plan.accumulated_loss_s >= plan.cost_s == 300
    before = [event for time, event in events if time < at]
    assert [e.level for e in before if isinstance(e, MitigationApplied)].count("migrate") >= 2
    (applied,) = [
        event
        for _, event in events
        if isinstance(event, MitigationApplied) and event.level == "restart"
    ]
    assert (applied.by, applied.cordons) == ("automatic", False)


@pytest.mark.parametrize(
    "state",
    [slow_gang(AUTOMATIC), slow_gang(preemptible=False)],
    ids=["not upgraded", "not preemptible"],
)
def test_a_job_that_may_not_be_stopped_and_an_earlier_release_have_none(
    state: FailSlowState,
) -> None:
    assert "restart" not in applied_levels(list(woken(state)))


def test_its_cost_is_learned_and_no_gain_is_claimed() -> None:
    state = slow_gang()
    list(woken(state))
    (out,) = [e for e in restarted(state) if isinstance(e, MitigationCarriedOut)]
    assert out.plan_id.split("/")[2] == "restart"
    before_s = state.mitigation.costs.of("migrate").cost_s
    requeued = JobRequeued(job_id="j1", tenant="acme", attempt=2, reason="migrated")
    again = [an_input(requeued, "placement"), placed("j1", attempt=2)]
    run(FAILSLOW, state, again, AT + 905_000)
    started = JobStarted(job_id="j1", tenant="acme", attempt=2, gpus=4)
    events = run(FAILSLOW, state, [an_input(started, "placement")], AT + 920_000)
    (cost,) = [event for event in events if isinstance(event, MitigationMeasured)]
    assert cost.cost_s == pytest.approx(50)
    assert state.mitigation.costs.of("restart").cost_s == pytest.approx(300 + (50 - 300) / 4)
    assert state.mitigation.costs.of("migrate").cost_s == before_s
    deficits, started_s = state.mitigation.deficits, (AT + 920_000) / 1000
    assert deficits.at("j1", started_s) == pytest.approx(50)
    assert 0 < deficits.at("j1", started_s + 60) < 50, "it pays for itself while the job runs well"
    done = JobSucceeded(job_id="j1", tenant="acme", attempt=2)
    events = run(FAILSLOW, state, [an_input(done, "placement")], AT + 2_000_000)
    (account,) = [event for event in events if isinstance(event, MitigationAccounted)]
    assert (account.cost_s, account.avoided_s) == (50, 0)


def test_a_job_is_restarted_once_as_a_fault_that_comes_back_is_none_of_its_program() -> None:
    state = slow_gang()
    list(woken(state))
    restarted(state)
    assert list(state.mitigation.restarted) == ["j1"]
    run(FAILSLOW, state, [placed("j1", attempt=2)], AT + 901_000)
    run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)], AT + 902_000)
    levels = applied_levels(list(woken(state)))
    assert "migrate" in levels and "restart" not in levels


def turned_down(state: FailSlowState, plan_id: str, reason: str, *, waits: bool) -> list[Event]:
    event = MitigationTurnedDown.model_validate(
        {
            "plan_id": plan_id,
            "job_id": "j1",
            "attempt": 1,
            "level": plan_id.split("/")[2],
            "node_ids": ("n2",),
            "reason": reason,
            "waits": waits,
        }
    )
    return run(FAILSLOW, state, [an_input(event, "placement")], AT + 900_000)


def plan_ids(state: FailSlowState) -> dict[str, str]:
    return {plan.plan.level: plan_id for plan_id, plan in state.mitigation.plans.items()}


def test_a_restart_that_placement_turns_down_is_over_and_not_planned_again() -> None:
    state = slow_gang()
    list(woken(state))
    ids = plan_ids(state)
    (end,) = turned_down(state, ids["restart"], "no_checkpoints", waits=False)
    assert end == MitigationCleared(
        plan_id=ids["restart"], job_id="j1", tenant="acme", reason="turned_down"
    )
    assert set(plan_ids(state)) == {"redistribute", "migrate"}
    assert not state.mitigation.restarted, "it was not restarted"
    assert "restart" not in applied_levels(list(woken(state)))
    assert turned_down(state, ids["restart"], "no_checkpoints", waits=False) == []


@pytest.mark.parametrize(("reason", "waits"), [("no_room", True), ("over", False)])
def test_a_migration_that_waits_for_room_stays_a_plan(reason: str, waits: bool) -> None:
    state = slow_gang()
    list(woken(state))
    assert turned_down(state, plan_ids(state)["migrate"], reason, waits=waits) == []
    assert "migrate" in plan_ids(state)
