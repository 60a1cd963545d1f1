"""False alarms make a kind of suspicion stricter in their pool, within bounds; approvals less."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.measures.strictness import MOST_STEPS, Strictness
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.faults import FaultSuspected, MarkFalseAlarm, ThresholdsAdjusted
from shared.contracts.mitigation import ApproveMitigation
from tests.harness.decider import an_input, given, run
from tests.services.failslow.core.plans.test_automation import until_no_plan_is_due
from tests.services.failslow.gangs import POOL, iterated, placed
from tests.services.failslow.paces import pace_change

FAILSLOW = FailSlow()
HEALTHY, SLOW, SLOWER = [1.0] * 3, [1.22] * 3, [1.5] * 3


def suspected(state: FailSlowState, job_id: str, slow: list[float]) -> list[Event]:
    """Return what is decided when a worker of a new gang is that slow."""
    run(FAILSLOW, state, [placed(job_id, workers=4)])
    events = run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, slow, HEALTHY, job_id=job_id)])
    return [event for event in events if isinstance(event, FaultSuspected)]


def marked(state: FailSlowState, fault_id: str) -> ThresholdsAdjusted:
    events = run(FAILSLOW, state, [an_input(MarkFalseAlarm(fault_id=fault_id), "commands")])
    (adjusted,) = [event for event in events if isinstance(event, ThresholdsAdjusted)]
    return adjusted


def test_after_a_false_alarm_a_suspicion_needs_more() -> None:
    state = given(FAILSLOW, POOL)
    assert suspected(state, "j1", SLOW)
    adjusted = marked(state, "j1/1/2/1")
    assert (adjusted.pool, adjusted.kind, adjusted.strictness) == ("main", "worker", 1.25)
    assert suspected(state, "j2", SLOW) == []
    assert suspected(state, "j3", SLOWER)


def test_an_approved_plan_confirms_the_kind() -> None:
    state = given(FAILSLOW, POOL)
    suspected(state, "j1", SLOW)
    marked(state, "j1/1/2/1")
    suspected(state, "j3", SLOWER)
    until_no_plan_is_due(state)
    plan_id = next(iter(state.mitigation.plans))
    run(FAILSLOW, state, [an_input(ApproveMitigation(plan_id=plan_id), "commands")])
    assert suspected(state, "j4", SLOW)
    assert state.strictness.of("worker").confirmed == 1


def test_however_many_false_alarms_there_are_the_thresholds_stay_bounded() -> None:
    strictness = Strictness()
    for _ in range(50):
        strictness.note(strictness.adjusted("main", "worker", false_alarm=True))
    assert strictness.of("worker").steps == MOST_STEPS
    limits = strictness.thresholds(Thresholds())
    assert limits.slowdown == pytest.approx(1.4)
    assert limits.score == 7
    for _ in range(50):
        strictness.note(strictness.adjusted("main", "worker", false_alarm=False))
    assert strictness.thresholds(Thresholds()) == Thresholds()


def test_kinds_are_judged_apart() -> None:
    strictness = Strictness()
    strictness.note(strictness.adjusted("main", "job", false_alarm=True))
    assert strictness.thresholds(Thresholds()) == Thresholds()
    assert not strictness.accepts_job(1.06, 9)
    assert not strictness.accepts_job(1.5, 6)
    assert strictness.accepts_job(1.5, 9)
    assert Strictness().accepts_job(1.01, 1)


def test_a_small_change_of_a_jobs_pace_is_no_fault_after_a_false_alarm() -> None:
    state = given(FAILSLOW, POOL)
    run(FAILSLOW, state, [placed("j1", workers=4)])
    state.strictness.note(state.strictness.adjusted("main", "job", false_alarm=True))
    change = pace_change(
        since_step=9, iterations=6, slowdown=1.06, iteration_s=1.06, score=6, confidence=0.9
    )
    assert run(FAILSLOW, state, [an_input(change, "local")]) == []
    larger = change.model_copy(update={"slowdown": 1.2, "score": 20.0})
    assert len(run(FAILSLOW, state, [an_input(larger, "local")])) == 1
