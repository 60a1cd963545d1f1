"""Facts are folded into episodes, plans and scores as they were decided."""

from __future__ import annotations

from services.failslow.core.decide import FailSlow
from shared.contracts.faults import FaultSuspected
from tests.harness.decider import given, run
from tests.services.failslow.core.plans.test_planning import planned, slow_gang
from tests.services.failslow.gangs import POOL, placed

FAILSLOW = FailSlow()


def test_a_planned_level_is_kept_with_its_figures() -> None:
    state = slow_gang()
    event = planned(state)
    open_plan = state.mitigation.plans[event.plan_id]
    assert (open_plan.plan.level, open_plan.plan.cost_s, open_plan.is_applied) == (
        "redistribute",
        5,
        False,
    )
    assert open_plan.plan.evidence == event.evidence


def test_a_job_that_is_slow_as_a_whole_has_no_node_to_care_for() -> None:
    state = given(FAILSLOW, POOL)
    run(FAILSLOW, state, [placed("j1", workers=4)])
    job = FaultSuspected(
        fault_id="j1/1/job/1",
        job_id="j1",
        node_id="",
        allocation_id="",
        slowdown=1.5,
        iteration_s=1.5,
        peers_s=1,
        score=9,
        reports=6,
        kind="job",
    )
    given_state = given(FAILSLOW, POOL, job)
    assert not given_state.mitigation.episodes
    assert not given_state.mitigation.health
