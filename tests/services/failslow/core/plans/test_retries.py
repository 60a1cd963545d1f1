"""A migration without room is tried again when room may have come, and not for ever."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.plans.retries import (
    FIRST_PAUSE_S,
    LEAST_PAUSE_S,
    MOST_TRIES,
    next_try_s,
    retry_plans,
    waiting_plans,
)
from services.failslow.core.state import FailSlowState
from shared.contracts.attempts import JobMigrated, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.mitigation import ApproveMitigation, MitigationApplied
from shared.contracts.nodes import NodeUncordoned
from shared.contracts.placement import Allocation
from tests.harness.decider import an_input, run, wake
from tests.services.failslow.core.plans.test_automation import (
    AUTOMATIC,
    applied,
    slow_gang,
    until_no_plan_is_due,
)
from tests.services.failslow.gangs import POOL

FAILSLOW = FailSlow()
OTHER = JobSucceeded(job_id="other", tenant="acme", attempt=1)


def without_room() -> tuple[FailSlowState, int]:
    """Return a pool with an applied migration that placement did not carry out, and its ms."""
    state = slow_gang(AUTOMATIC)
    until_no_plan_is_due(state)
    (own,) = waiting_plans(state)
    return state, round(own.tried_s * 1000)


def after(state: FailSlowState, at_ms: int, *news: Event) -> list[MitigationApplied]:
    inputs = [an_input(event, "placement") for event in news]
    return applied(run(FAILSLOW, state, inputs, at_ms))


@pytest.mark.parametrize("news", [OTHER, NodeUncordoned(node_id="n9")])
def test_what_may_make_room_leads_to_another_try(news: Event) -> None:
    state, tried_ms = without_room()
    soon, later = tried_ms + 1, tried_ms + round(LEAST_PAUSE_S * 1000)
    assert after(state, soon, news) == []
    (again,) = after(state, later, news)
    assert (again.plan_id, again.node_ids, again.by) == ("j1/1/migrate/2", ("n2",), "automatic")
    assert (again.cordons, again.reason) == (True, "try 2")
    assert after(state, later + 1, news) == []


def test_without_news_it_is_tried_at_growing_intervals_a_bounded_number_of_times() -> None:
    state, tried_ms = without_room()
    times: list[float] = []
    while (due := FAILSLOW.next_wake(state)) is not None:
        assert len(applied(wake(FAILSLOW, state, due))) == 1
        times.append((due - tried_ms) / 1000 / FIRST_PAUSE_S)
    assert times == [pytest.approx(2.0**tries - 1, abs=0.01) for tries in range(1, MOST_TRIES)]
    assert after(state, tried_ms + 10**9, OTHER) == []
    assert next_try_s(state) is None


def test_a_job_that_has_left_is_not_moved_again() -> None:
    state, tried_ms = without_room()
    left = JobMigrated(
        job_id="j1",
        tenant="acme",
        attempt=1,
        reason="slow_node",
        from_nodes=("n2",),
        to_nodes=("n9",),
        target=(Allocation(rank=2, node_id="n9"),),
    )
    assert after(state, tried_ms + 60_000, left) == []
    assert waiting_plans(state) == []
    assert FAILSLOW.next_wake(state) is None


def test_a_pool_without_mitigation_tries_nothing_again() -> None:
    state, tried_ms = without_room()
    off = AUTOMATIC.model_copy(update={"mitigation": "off"})
    run(FAILSLOW, state, [an_input(off, "access")], tried_ms)
    assert after(state, tried_ms + 10**6, OTHER) == []


def test_a_plan_that_an_operator_approved_is_tried_again_without_a_cordon() -> None:
    state = slow_gang(POOL)
    until_no_plan_is_due(state)
    (plan_id,) = (name for name in state.mitigation.plans if "migrate" in name)
    approve = ApproveMitigation(plan_id=plan_id)
    run(FAILSLOW, state, [an_input(approve, "commands")])
    due = FAILSLOW.next_wake(state)
    assert due is not None
    (again,) = applied(wake(FAILSLOW, state, due))
    assert (again.by, again.cordons) == ("operator", False)


def test_plans_that_wait_for_an_operator_are_left_alone() -> None:
    state = slow_gang(POOL)
    until_no_plan_is_due(state)
    assert list(retry_plans(state, [], 10**15)) == []
