from __future__ import annotations

from services.throttle.core.decide import Throttle
from services.throttle.core.start import due_at, startable_request
from shared.contracts.clocks import ClockStepObserved
from shared.contracts.llm import EndpointClockStepped, LlmRequestQueued, LlmRequestRejected
from tests.harness.decider import AT, an_input, run
from tests.services.throttle.llm import endpoint, lane, local_request

HOUR_MS = 3_600_000


def test_a_wake_is_due_at_the_time_out_of_the_oldest_request() -> None:
    state = lane(capacity=1, settings=endpoint(queue_timeout_s=5.0))
    assert due_at(state) is None
    run(Throttle(), state, [local_request("r1")])
    assert due_at(state) is None
    run(Throttle(), state, [local_request("r2"), local_request("r3", "b")], AT + 100)
    assert startable_request(state) is None
    assert due_at(state) == AT + 5100


def test_a_wake_is_due_at_once_while_a_request_can_start() -> None:
    state = lane(capacity=0)
    run(Throttle(), state, [local_request("r1")])
    state.capacity = 1
    request = startable_request(state)
    assert request is not None
    assert request.request_id == "r1"
    assert due_at(state) == 0


def test_after_a_step_of_the_clock_a_wait_ends_when_it_would_have_ended() -> None:
    state = lane(capacity=1, settings=endpoint(queue_timeout_s=5.0))
    run(Throttle(), state, [local_request("r1"), local_request("r2")])
    stepped = an_input(ClockStepObserved(by_ms=HOUR_MS), "local")
    assert run(Throttle(), state, [stepped], AT + HOUR_MS + 100) == [
        EndpointClockStepped(endpoint="chat", by_ms=HOUR_MS)
    ]
    assert Throttle().next_wake(state) == AT + HOUR_MS + 5000
    (rejected,) = run(Throttle(), state, [], AT + HOUR_MS + 5000)
    assert isinstance(rejected, LlmRequestRejected)
    assert rejected.reason == "queue_timeout"


def test_the_objective_of_a_first_token_is_a_wall_time_before_and_after_a_step() -> None:
    state = lane(capacity=0)
    stepped = an_input(ClockStepObserved(by_ms=HOUR_MS), "local")
    asked = local_request("r1", first_token_ms=400)
    _, queued = run(Throttle(), state, [stepped, asked], AT + HOUR_MS)
    assert isinstance(queued, LlmRequestQueued)
    assert queued.first_token_by == AT + HOUR_MS + 400
    served = state.waiting["r1"].served
    assert (served.queued_at, served.first_token_by) == (AT, AT + 400)
