"""In a pool that mitigates automatically plans are applied until too many nodes are cordoned."""

from __future__ import annotations

import pickle

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.plans.automation import settle_plans
from services.failslow.core.plans.planning import due_at
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.breaker import BreakerChanged
from shared.contracts.mitigation import ApproveMitigation, MitigationApplied, MitigationPlanned
from shared.contracts.nodes import NodeCordoned, NodeUncordoned
from shared.contracts.pools import PoolConfigured
from tests.harness.decider import AT, an_input, given, run, wake
from tests.services.failslow.gangs import POOL, iterated, placed

FAILSLOW = FailSlow()
HEALTHY, SLOW = [1.0] * 3, [1.5] * 3
AUTOMATIC = POOL.model_copy(update={"mitigation": "automatic"})


def slow_gang(pool: PoolConfigured = AUTOMATIC) -> FailSlowState:
    """Return a pool of four nodes, with a gang of which the third worker is slow."""
    state = given(FAILSLOW, pool)
    run(FAILSLOW, state, [placed("j1", workers=4)])
    run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    return state


def until_no_plan_is_due(state: FailSlowState) -> list[Event]:
    events: list[Event] = []
    while (due := due_at(state)) is not None:
        events += wake(FAILSLOW, state, due)
    return events


def applied(events: list[Event]) -> list[MitigationApplied]:
    return [event for event in events if isinstance(event, MitigationApplied)]


def breakers(events: list[Event]) -> list[BreakerChanged]:
    return [event for event in events if isinstance(event, BreakerChanged)]


def placement(state: FailSlowState, event: Event) -> list[Event]:
    return run(FAILSLOW, state, [an_input(event, "placement")])


def configured(state: FailSlowState, **settings: object) -> list[Event]:
    assert state.pool is not None
    pool = state.pool.model_copy(update=settings)
    return run(FAILSLOW, state, [an_input(pool, "access")])


def test_a_migration_needs_no_operator_and_its_node_is_cordoned() -> None:
    (event,) = applied(until_no_plan_is_due(slow_gang()))
    assert (event.level, event.node_ids, event.by) == ("migrate", ("n2",), "automatic")
    assert event.fault_ids == ("j1/1/2/1",)
    assert event.cordons


def test_what_the_framework_does_stays_advice() -> None:
    state = slow_gang()
    due = due_at(state)
    assert due is not None
    (plan,) = wake(FAILSLOW, state, due)
    assert isinstance(plan, MitigationPlanned)
    assert plan.actor == "framework"


def test_with_approval_nothing_is_applied() -> None:
    assert applied(until_no_plan_is_due(slow_gang(POOL))) == []


def test_without_mitigation_no_plan_is_made_until_it_is_switched_on() -> None:
    state = slow_gang(POOL.model_copy(update={"mitigation": "off"}))
    assert FAILSLOW.next_wake(state) is None
    assert run(FAILSLOW, state, [], AT + 10**9) == []
    configured(state, mitigation="approve")
    assert FAILSLOW.next_wake(state) is not None


def test_a_pool_that_becomes_automatic_applies_the_plans_that_wait() -> None:
    state = slow_gang(POOL)
    until_no_plan_is_due(state)
    assert [event.by for event in applied(configured(state, mitigation="automatic"))] == [
        "automatic"
    ]


def test_the_breaker_opens_by_an_event_and_closes_when_nodes_return() -> None:
    state = slow_gang()
    placement(state, NodeCordoned(node_id="n0"))
    events = until_no_plan_is_due(state)
    assert applied(events) == []
    (opened,) = breakers(events)
    assert (opened.is_open, opened.plan_id) == (True, "j1/1/migrate/2")
    assert (opened.nodes, opened.out_of_use, opened.most) == (4, 1, 1)
    assert FAILSLOW.next_wake(state) is None, "an open breaker is no reason to wake"
    events = placement(state, NodeUncordoned(node_id="n0"))
    assert [event.node_ids for event in applied(events)] == [("n2",)]
    assert [event.is_open for event in breakers(events)] == [False]


def test_an_operator_may_approve_what_the_breaker_holds() -> None:
    state = slow_gang()
    placement(state, NodeCordoned(node_id="n0"))
    until_no_plan_is_due(state)
    command = ApproveMitigation(plan_id="j1/1/migrate/2")
    events = run(FAILSLOW, state, [an_input(command, "commands")])
    assert [(event.by, event.cordons) for event in applied(events)] == [("operator", False)]
    assert [event.is_open for event in breakers(events)] == [False]


@pytest.mark.parametrize(
    ("changes", "closes"),
    [({"mitigation_share": 0.5}, True), ({"mitigation": "approve"}, True), ({}, False)],
)
def test_settings_close_the_breaker(changes: dict[str, object], closes: bool) -> None:
    state = slow_gang()
    placement(state, NodeCordoned(node_id="n0"))
    until_no_plan_is_due(state)
    assert bool(breakers(configured(state, **changes))) is closes


def test_a_share_of_nothing_cordons_nothing() -> None:
    state = slow_gang(AUTOMATIC.model_copy(update={"mitigation_share": 0.0}))
    assert applied(until_no_plan_is_due(state)) == []


def test_a_second_plan_waits_while_the_first_node_is_not_back() -> None:
    """The order counts before placement has cordoned the node, and after it."""
    state = slow_gang()
    until_no_plan_is_due(state)
    assert state.fleet.ordered == {"n2": "j1/1/migrate/2"}
    placement(state, NodeCordoned(node_id="n2"))
    assert (state.fleet.ordered, state.fleet.out_of_use) == ({}, {"n2"})
    run(FAILSLOW, state, [placed("j2", workers=4)])
    slow = iterated(SLOW, HEALTHY, HEALTHY, HEALTHY, job_id="j2")
    run(FAILSLOW, state, [slow])
    events = until_no_plan_is_due(state)
    assert applied(events) == []
    assert [event.is_open for event in breakers(events)] == [True]


def test_one_tenants_reports_alone_cordon_half_of_the_share() -> None:
    """Of twelve nodes four may be out of use, two of them by one tenant's reports."""
    state = given(FAILSLOW, AUTOMATIC.model_copy(update={"mitigation_share": 0.34}))
    run(FAILSLOW, state, [placed("all", workers=12)])
    cordons = [lies_about(state, f"a{place}", place) for place in (0, 4, 8)]
    assert cordons == [True, True, False]
    assert state.fleet.held_by("acme") == {"n2", "n6"}
    assert lies_about(state, "b1", 8, tenant="zeta"), "another tenant's job has confirmed it"
    assert state.fleet.out_of_use == {"n2", "n6", "n10"}
    placement(state, NodeCordoned(node_id="n2"))
    placement(state, NodeUncordoned(node_id="n2"))
    assert state.fleet.held_by("acme") == {"n6"}


def lies_about(state: FailSlowState, job_id: str, first: int, tenant: str = "acme") -> bool:
    """Return whether the plan of a gang that reports its third worker as slow cordons the node."""
    run(FAILSLOW, state, [placed(job_id, tenant=tenant, first=first)])
    run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY, job_id=job_id, first=first)])
    (event,) = applied(until_no_plan_is_due(state))
    return event.cordons


def test_a_restored_state_decides_the_same() -> None:
    state = slow_gang()
    placement(state, NodeCordoned(node_id="n0"))
    until_no_plan_is_due(state)
    again: FailSlowState = pickle.loads(pickle.dumps(state))
    assert again == state
    assert list(settle_plans(again, 0.0)) == []
