from __future__ import annotations

from services.throttle.core.decide import Throttle
from services.throttle.core.start import due_at, startable_request
from shared.testing.decider import AT, run
from tests.services.throttle.llm import endpoint, lane, local_request


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
