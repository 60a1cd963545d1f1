"""A job whose pipeline links became slow gets a schedule as advice, once, at break even."""

from __future__ import annotations

import pickle

from services.failslow.core.decide import FailSlow
from services.failslow.core.plans.planning import due_at
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.faults import ThresholdsAdjusted
from shared.contracts.mitigation import ApproveMitigation, MitigationApplied, MitigationPlanned
from shared.contracts.paces import JobPaceChanged
from shared.contracts.parallelism import PipelineProfile
from tests.harness.decider import AT, an_input, given
from tests.services.failslow.gangs import POOL, placed
from tests.services.failslow.paces import pace_change
from tests.services.failslow.plans import run, wake

FAILSLOW = FailSlow()
UPGRADED = POOL.model_copy(update={"release": 1})
PIPELINE = PipelineProfile(
    microbatches=24,
    forward_s=(0.01,) * 4,
    backward_s=(0.01,) * 4,
    weight_s=(0.01,) * 4,
    link_delay_s=(0.0, 0.06, 0.0),
)


def change(*, is_slow: bool = True, pipeline: PipelineProfile | None = PIPELINE) -> JobPaceChanged:
    return pace_change(is_slow=is_slow, since_step=50, cause="communication", pipeline=pipeline)


def slow_job(pipeline: PipelineProfile | None = PIPELINE) -> FailSlowState:
    state = given(FAILSLOW, UPGRADED)
    run(FAILSLOW, state, [placed("j1")])
    run(FAILSLOW, state, [an_input(change(pipeline=pipeline), "local")])
    return state


def next_plans(state: FailSlowState) -> list[Event]:
    due = due_at(state)
    assert due is not None
    return wake(FAILSLOW, state, due)


def test_the_advice_has_warm_up_counts_and_comes_at_break_even() -> None:
    state = slow_job()
    due = due_at(state)
    assert due is not None
    assert (due - AT) / 1000 == 15, "a third of each second is lost, and advice costs 5 s"
    (plan,) = wake(FAILSLOW, state, due)
    assert isinstance(plan, MitigationPlanned)
    assert (plan.level, plan.actor, plan.fault_ids) == (
        "adapt_schedule",
        "framework",
        ("j1/1/job/1",),
    )
    assert plan.schedule is not None
    assert plan.schedule.warmup == (13, 11, 3, 1)
    assert plan.schedule.iteration_s < plan.schedule.unadapted_s
    assert plan.remaining < 0.5
    assert plan.evidence[0].startswith("messages from stage 1 to stage 2 take 0.06 s")


def test_it_is_advised_once_also_after_a_restart_and_a_measurement_may_follow() -> None:
    state = slow_job()
    next_plans(state)
    again: FailSlowState = pickle.loads(pickle.dumps(state))
    (later,) = next_plans(again)
    assert isinstance(later, MitigationPlanned)
    assert later.level == "validate"
    assert due_at(again) is None


def test_that_it_was_done_is_acknowledged_and_a_recovery_ends_it() -> None:
    state = slow_job()
    (plan,) = next_plans(state)
    assert isinstance(plan, MitigationPlanned)
    command = ApproveMitigation(plan_id=plan.plan_id)
    events = run(FAILSLOW, state, [an_input(command, "commands")])
    assert [event.by for event in events if isinstance(event, MitigationApplied)] == ["operator"]
    verdicts = [event for event in events if isinstance(event, ThresholdsAdjusted)]
    assert [event.kind for event in verdicts] == ["job"]
    run(FAILSLOW, state, [an_input(change(is_slow=False), "local")])
    assert state.mitigation.plans == {}
    assert due_at(state) is None


def test_a_job_that_reports_no_pipeline_gets_no_such_advice() -> None:
    (plan,) = next_plans(slow_job(None))
    assert isinstance(plan, MitigationPlanned)
    assert plan.level == "validate"


def test_no_advice_is_given_while_mitigation_is_off() -> None:
    state = slow_job()
    off = UPGRADED.model_copy(update={"mitigation": "off"})
    run(FAILSLOW, state, [an_input(off, "access")])
    assert due_at(state) is None
    assert run(FAILSLOW, state, [], AT + 10**9) == []
