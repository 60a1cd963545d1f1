from __future__ import annotations

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from tests.harness.decider import run
from tests.services.throttle.llm import BATCH, ended, endpoint, lane, local_request, observed


def test_the_load_is_in_tokens_where_they_are_limited_and_in_requests_otherwise() -> None:
    state = lane()
    run(Throttle(), state, [local_request("r1", prompt=600)])
    load = state.load
    assert (load.held_tokens, load.batch_tokens, load.waiting) == (600, BATCH, 0)
    free = lane(capacity=4, settings=endpoint(batch_tokens=None))
    run(Throttle(), free, [local_request("r1", prompt=600)])
    assert (free.load.held_tokens, free.load.batch_tokens) == (1, 4)


def test_an_engine_that_reports_a_queue_is_overloaded() -> None:
    state = lane()
    assert not state.load.is_overloaded
    run(Throttle(), state, [observed(100, overloaded=True)])
    assert state.load.is_overloaded


def test_waiting_requests_are_counted_per_tenant() -> None:
    state = lane(capacity=1)
    run(Throttle(), state, [local_request(f"{t}{n}", t) for n in range(2) for t in "ab"])
    assert state.waiting_of == {"a": 1, "b": 2}
    run(Throttle(), state, [ended("a0")])
    assert state.waiting_of == {"a": 1, "b": 1}
    assert [request.request_id for request in state.open_requests()] == ["b0", "a1", "b1"]
    assert state.find_request("b1") is state.waiting["b1"]


def test_a_lane_without_an_endpoint_is_empty() -> None:
    state = EndpointState(0)
    assert (state.endpoint_name, state.note_of("a")) == ("", None)
    assert state.load.batch_tokens == 0
