from __future__ import annotations

import pickle

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.evolve import FOLDS, scoped_id
from services.throttle.core.state import EndpointState
from shared.contracts.base import Event
from shared.contracts.bookkeeping import JobsReleased
from shared.contracts.llm import LlmRequestFinished, LlmRequestQueued, LlmRequestStarted
from tests.contracts.event_folds import assert_folds_every_type_of, assert_folds_take_their_types
from tests.harness.decider import AT, fold, given, run
from tests.services.throttle.llm import ended, endpoint, lane, local_request, made


def history() -> tuple[list[Event], EndpointState]:
    """Return the events of a small load, and the state after it."""
    state = lane(capacity=2, settings=endpoint(discipline="berth"))
    events: list[Event] = []
    steps = [
        [local_request(f"{t}{n}", t, most=30) for n in range(3) for t in "ab"],
        [made(a0=3, b0=8)],
        [ended("a0", output=9, prompt_tokens=12)],
        [ended("b0", output=30)],
    ]
    for inputs in steps:
        events += run(Throttle(), state, inputs, AT)
    return events, state


def test_a_replay_gives_the_same_state() -> None:
    events, state = history()
    again = fold(Throttle(), lane(capacity=2, settings=endpoint(discipline="berth")), events)
    assert list(again.running) == list(state.running)
    assert list(again.waiting) == list(state.waiting)
    assert repr(again.discipline) == repr(state.discipline)


def test_a_snapshot_goes_on_as_the_state_does() -> None:
    _, state = history()
    copy: EndpointState = pickle.loads(pickle.dumps(state))
    inputs = [ended("a1"), local_request("a9", "a"), ended("b1")]
    assert run(Throttle(), copy, inputs) == run(Throttle(), state, inputs)


def test_events_of_requests_that_are_not_known_change_nothing() -> None:
    state = lane()
    fold(
        Throttle(),
        state,
        [
            LlmRequestStarted(request_id="gone", tenant="a"),
            LlmRequestFinished(request_id="gone", tenant="a", prompt_tokens=1, output_tokens=1),
        ],
    )
    assert not state.running


def test_every_event_type_of_the_ledger_has_a_fold_and_no_other_has() -> None:
    assert_folds_every_type_of("throttle", FOLDS)


def test_each_fold_takes_the_type_that_it_stands_beside() -> None:
    assert_folds_take_their_types(FOLDS)


def test_an_event_of_another_ledger_stops_the_lane() -> None:
    with pytest.raises(TypeError):
        fold(Throttle(), lane(), [JobsReleased(ends=())])


def test_events_of_older_versions_fold() -> None:
    queued = LlmRequestQueued(
        request_id="r1", tenant="a", endpoint="chat", prompt_tokens=5, max_output_tokens=9
    )
    state = given(Throttle(), queued, LlmRequestStarted(request_id="r1", tenant="a", counter=5.0))
    assert list(state.running) == ["r1"]
    assert scoped_id("a", "r1") in state.accepted_ids
