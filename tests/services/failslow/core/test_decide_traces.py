"""A verdict follows from the placement of its gang, its end from the verdict."""

from __future__ import annotations

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.attempts import JobSucceeded
from shared.contracts.faults import FaultCleared, FaultSuspected
from shared.telemetry.trace_ids import new_traceparent
from tests.harness.decider import an_input, given, run_facts
from tests.services.failslow.core.test_decide import HEALTHY, SLOW
from tests.services.failslow.gangs import POOL, iterated, placed

FAILSLOW = FailSlow()
START = new_traceparent()


def watching() -> FailSlowState:
    state = given(FAILSLOW, POOL)
    run_facts(FAILSLOW, state, [placed("j1", workers=4)._replace(traceparent=START)])
    return state


def test_a_suspicion_has_the_trace_of_the_gangs_placement() -> None:
    state = watching()
    fact, _ = run_facts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    assert isinstance(fact.event, FaultSuspected)
    assert fact.traceparent == START


def test_the_end_of_a_suspicion_has_the_trace_of_the_suspicion() -> None:
    state = watching()
    run_facts(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    done = JobSucceeded(job_id="j1", tenant="acme", attempt=1)
    facts = run_facts(FAILSLOW, state, [an_input(done, "placement")])
    (cleared,) = [fact for fact in facts if isinstance(fact.event, FaultCleared)]
    assert cleared.traceparent == START
