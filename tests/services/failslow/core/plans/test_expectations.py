"""The next plan of a slow gang is stated once after each change, and comes as stated."""

from __future__ import annotations

import pickle

from services.failslow.core.decide import FailSlow
from services.failslow.core.plans.planning import due_at
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.mitigation import MitigationExpected, MitigationPlanned
from shared.contracts.pools import PoolConfigured
from tests.harness.decider import AT, an_input, given, run, wake
from tests.services.failslow.gangs import POOL, iterated, placed
from tests.services.failslow.paces import pace_change

FAILSLOW = FailSlow()
UPGRADED = POOL.model_copy(update={"release": 1})
HEALTHY, SLOW = [1.0] * 3, [1.5] * 3


def expected(events: list[Event]) -> list[MitigationExpected]:
    return [event for event in events if isinstance(event, MitigationExpected)]


def suspect(pool: PoolConfigured = UPGRADED) -> tuple[FailSlowState, list[Event]]:
    state = given(FAILSLOW, pool)
    run(FAILSLOW, state, [placed("j1")])
    return state, run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])


def reasons(event: MitigationExpected) -> dict[str, str]:
    return {other.level: other.reason for other in event.declined}


def test_a_plan_comes_when_it_was_stated_to_come() -> None:
    state, events = suspect()
    (first,) = expected(events)
    assert (first.level, first.due_at, first.cost_s) == ("redistribute", due_at(state), 5)
    assert first.due_lost_s >= first.cost_s
    assert first.due_at is not None and first.due_at > AT
    assert reasons(first) == {
        "adapt_schedule": "no_help",
        "rearrange": "no_help",
        "restart": "not_offered",
    }
    events = wake(FAILSLOW, state, first.due_at)
    (plan,) = [event for event in events if isinstance(event, MitigationPlanned)]
    assert (plan.level, plan.accumulated_loss_s) == (first.level, first.due_lost_s)
    (second,) = expected(events)
    assert (second.level, reasons(second)["redistribute"]) == ("migrate", "planned")


def test_it_is_stated_once_also_after_a_restart() -> None:
    state, _ = suspect()
    again: FailSlowState = pickle.loads(pickle.dumps(state))
    assert run(FAILSLOW, again, []) == []


def test_once_all_was_planned_nothing_is_due() -> None:
    state, _ = suspect()
    last = None
    while (due := due_at(state)) is not None:
        (last,) = expected(wake(FAILSLOW, state, due))
    assert last is not None
    assert (last.level, last.due_at, reasons(last)["migrate"]) == ("nothing", None, "planned")


def test_what_earlier_levels_have_cost_makes_another_one_too_dear() -> None:
    state, _ = suspect()
    state.mitigation.deficits.charge("j1", 299.0, 0.5, 0.0)
    state.mitigation.deficits.jobs["j1"].share = 0.0
    state.mitigation.assume(120.0)
    (stated,) = expected(run(FAILSLOW, state, []))
    assert (stated.level, reasons(stated)["migrate"]) == ("nothing", "too_dear")


def test_a_job_that_is_slow_as_a_whole_waits_for_its_measurement() -> None:
    state = given(FAILSLOW, UPGRADED)
    run(FAILSLOW, state, [placed("j1")])
    (stated,) = expected(run(FAILSLOW, state, [an_input(pace_change(), "local")]))
    assert (stated.level, stated.due_at) == ("validate", due_at(state))
    assert stated.due_lost_s == stated.cost_s
    assert reasons(stated) == {"adapt_schedule": "not_offered"}


def test_nothing_is_stated_before_the_upgrade_or_without_mitigation() -> None:
    off = UPGRADED.model_copy(update={"mitigation": "off"})
    for pool in (POOL, off):
        state, events = suspect(pool)
        assert expected(events) == []
        assert run(FAILSLOW, state, []) == []
