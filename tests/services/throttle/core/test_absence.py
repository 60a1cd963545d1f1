"""Requests of an endpoint without an engine that can serve: they wait for a while, no longer."""

from __future__ import annotations

from services.throttle.core.absence import describe_away, is_away_too_long
from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.base import Event
from shared.contracts.llm import EndpointCapacityNoted, EngineStanding, LlmRequestRejected
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, run, wake
from tests.services.throttle.llm import command, endpoint, lane, local_request, observed

THROTTLE = Throttle()
AWAY = "a: health: connection refused"


def decide(state: EndpointState, *inputs: Input, now: int = AT) -> list[Event]:
    return run(THROTTLE, state, inputs, now)


def without_engines(**settings: object) -> EndpointState:
    state = lane(capacity=4, settings=endpoint(away_timeout_s=10.0, **settings))
    decide(state, observed(0, away=AWAY))
    return state


def rejected(events: list[Event]) -> list[tuple[str, str]]:
    return [
        (event.request_id, event.reason)
        for event in events
        if isinstance(event, LlmRequestRejected)
    ]


def test_a_request_waits_for_engines_that_come_back_in_time() -> None:
    state = without_engines()
    decide(state, local_request("r1"), now=AT + 9_000)
    assert wake(THROTTLE, state, AT + 9_999) == []
    decide(state, observed(4), now=AT + 9_999)
    assert list(state.running) == ["r1"]
    assert not is_away_too_long(state, AT + 60_000)


def test_all_clients_get_the_reason_once_the_engines_are_away_for_too_long() -> None:
    state = without_engines()
    decide(state, local_request("r1"), now=AT + 1)
    decide(state, local_request("r2"), now=AT + 9_000)
    assert THROTTLE.next_wake(state) == AT + 10_000
    events = wake(THROTTLE, state, AT + 10_000)
    assert rejected(events) == [("r1", "upstream_unavailable"), ("r2", "upstream_unavailable")]
    assert isinstance(events[0], LlmRequestRejected)
    assert AWAY in events[0].detail
    assert (events[0].retry_after_s, state.waiting) == (5.0, {})


def test_a_later_request_is_refused_at_once() -> None:
    state = without_engines()
    (event,) = decide(state, local_request("r1"), now=AT + 12_000)
    assert rejected([event]) == [("r1", "upstream_unavailable")]
    assert describe_away(state, AT + 12_000) == (
        "endpoint: 'chat': no engine can serve for 12 s, and requests wait 10 s for one "
        f"(away_timeout_s): {AWAY}"
    )


def test_a_request_by_event_waits_on_as_no_client_waits_for_it() -> None:
    state = without_engines(queue_timeout_s=100.0)
    decide(state, command("r1", place="0/1"), local_request("r2"))
    assert rejected(wake(THROTTLE, state, AT + 10_000)) == [("r2", "upstream_unavailable")]
    assert list(state.waiting) == ["r1"]
    assert THROTTLE.next_wake(state) == AT + 100_000
    (event,) = wake(THROTTLE, state, AT + 100_000)
    assert isinstance(event, LlmRequestRejected)
    assert (event.reason, event.detail.endswith(AWAY)) == ("queue_timeout", True)


def test_engines_that_are_named_anew_get_their_time() -> None:
    state = without_engines()
    fresh = endpoint(away_timeout_s=10.0, queue_limit=7)
    decide(state, an_input(fresh, "access"), now=AT + 60_000)
    decide(state, local_request("r1"), now=AT + 61_000)
    assert list(state.waiting) == ["r1"]
    assert THROTTLE.next_wake(state) == AT + 70_000


def test_another_reason_does_not_prolong_the_time() -> None:
    state = without_engines()
    decide(state, observed(0, away="a: health: status 503"), now=AT + 5_000)
    assert is_away_too_long(state, AT + 10_000)


def test_standings_of_engines_are_noted_each_time_they_are_given() -> None:
    state = lane(capacity=4)
    engines = (EngineStanding(name="a", available=True, in_flight=2, waiting=0, kv_ratio=0.25),)
    noted = EndpointCapacityNoted(endpoint="chat", requests=4, engines=engines)
    assert decide(state, observed(4, engines=engines)) == [noted]
    assert decide(state, observed(4)) == []
