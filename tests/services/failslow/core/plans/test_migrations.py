"""A migration by a plan is followed from the stop over the new start to the end of the job."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.attempts import JobMigrated, JobRequeued, JobStarted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.faults import FaultCleared
from shared.contracts.mitigation_account import (
    MitigationAccounted,
    MitigationCarriedOut,
    MitigationMeasured,
)
from shared.contracts.placement import Allocation
from tests.harness.decider import AT, an_input, run
from tests.services.failslow.core.plans.test_automation import slow_gang, until_no_plan_is_due
from tests.services.failslow.gangs import placed

FAILSLOW = FailSlow()
LATER = AT + 600_000
TARGET = (Allocation(rank=0, node_id="n9", gpus=(0,)),)


def migrated(reason: str = "slow_node") -> JobMigrated:
    return JobMigrated(
        job_id="j1",
        tenant="acme",
        attempt=1,
        reason=reason,
        from_nodes=("n2",),
        to_nodes=("n9",),
        target=TARGET,
        lost_work_s=30,
    )


def placement(state: FailSlowState, event: Event, after_s: float = 0) -> list[Event]:
    at = LATER + round(after_s * 1000)
    return run(FAILSLOW, state, [an_input(event, "placement")], at)


def moved() -> tuple[FailSlowState, list[Event]]:
    state = slow_gang()
    until_no_plan_is_due(state)
    return state, placement(state, migrated())


def started_again(state: FailSlowState) -> list[Event]:
    placement(state, JobRequeued(job_id="j1", tenant="acme", attempt=2, reason="migrated"), 5)
    placement(state, placed("j1", attempt=2).message, 6)  # type: ignore[arg-type]
    started = JobStarted(job_id="j1", tenant="acme", attempt=2, gpus=4)
    return placement(state, started, 20)


def of(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def test_the_job_left_and_the_loss_of_its_gang_is_known() -> None:
    _, events = moved()
    (out,) = of(events, MitigationCarriedOut)
    assert isinstance(out, MitigationCarriedOut)
    assert (out.plan_id, out.attempt, out.slowdown) == ("j1/1/migrate/2", 1, 0.5)
    assert out.elapsed_s == pytest.approx(600)
    (cleared,) = of(events, FaultCleared)
    assert isinstance(cleared, FaultCleared)
    assert cleared.lost_gpu_s == pytest.approx(4 * 600 / 3)


def test_later_plans_reckon_with_the_cost_that_was_measured() -> None:
    state, _ = moved()
    (measured,) = of(started_again(state), MitigationMeasured)
    assert isinstance(measured, MitigationMeasured)
    assert (measured.attempt, measured.gpus) == (2, 4)
    assert measured.cost_s == pytest.approx(20 + 30)
    assert state.mitigation.costs.of("migrate").cost_s == pytest.approx(120 + (50 - 120) / 4)
    assert started_again(state) == [], "once"


def test_the_gain_is_estimated_when_the_job_ends() -> None:
    state, _ = moved()
    started_again(state)
    done = JobSucceeded(job_id="j1", tenant="acme", attempt=2)
    (account,) = of(placement(state, done, 3620), MitigationAccounted)
    assert isinstance(account, MitigationAccounted)
    assert (account.ran_s, account.gpus, account.cost_s) == (3600, 4, 50)
    assert 0 < account.avoided_s < 5400 / 3
    assert not state.mitigation.migrations


def test_a_job_that_ends_before_it_runs_again_has_cost_only() -> None:
    state, _ = moved()
    done = JobSucceeded(job_id="j1", tenant="acme", attempt=1)
    (account,) = of(placement(state, done, 10), MitigationAccounted)
    assert isinstance(account, MitigationAccounted)
    assert (account.ran_s, account.avoided_s, account.cost_s) == (0, 0, 40)


@pytest.mark.parametrize("reason", ["drain", "defragment"])
def test_migrations_for_other_reasons_are_no_mitigation(reason: str) -> None:
    state = slow_gang()
    until_no_plan_is_due(state)
    assert of(placement(state, migrated(reason)), MitigationCarriedOut) == []


def test_without_an_applied_plan_nothing_was_carried_out() -> None:
    assert of(placement(slow_gang(), migrated()), MitigationCarriedOut) == []
