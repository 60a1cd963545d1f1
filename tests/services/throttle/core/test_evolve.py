from __future__ import annotations

import pytest

from services.throttle.core.evolve import FOLDS, evolve, scoped_id
from services.throttle.core.state import EndpointState
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
    TokensMade,
)
from shared.ledger.decider import Fact
from shared.testing.decider import AT
from tests.contracts.event_folds import assert_folds_every_type_of, assert_folds_take_their_types
from tests.contracts.fixture_events import event_of_no, events_of_ledger
from tests.services.throttle.llm import lane

EVENTS = events_of_ledger("throttle")
QUEUED = LlmRequestQueued(
    request_id="r1", tenant="a", endpoint="chat", prompt_tokens=30, max_output_tokens=40
)
STARTED = LlmRequestStarted(request_id="r1", tenant="a", counter=30.0)
CHARGED = TokensCharged(endpoint="chat", made=(TokensMade(request_id="r1", tokens=10),))
FINISHED = LlmRequestFinished(request_id="r1", tenant="a", prompt_tokens=30, output_tokens=10)


def test_every_event_type_of_the_ledger_has_a_fold_and_no_other_has() -> None:
    assert_folds_every_type_of("throttle", FOLDS)


def test_each_fold_takes_the_type_that_it_stands_beside() -> None:
    assert_folds_take_their_types(FOLDS)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.TYPE)
def test_a_recorded_event_of_every_type_is_folded(event: Event) -> None:
    evolve(EndpointState(0), Fact(event, "throttle", 0, 1, 0, AT))


def test_an_event_of_another_ledger_raises() -> None:
    with pytest.raises(TypeError, match="unknown type"):
        evolve(EndpointState(0), Fact(event_of_no("throttle"), "throttle", 0, 1, 0, AT))


def test_a_queued_request_waits_and_its_id_is_remembered() -> None:
    state = lane(QUEUED)
    assert list(state.waiting) == list(state.accounts["a"].queue) == ["r1"]
    assert scoped_id("a", "r1") in state.accepted_ids


def test_a_started_request_takes_the_counter_of_the_event() -> None:
    state = lane(QUEUED, STARTED)
    assert (list(state.waiting), list(state.running)) == ([], ["r1"])
    assert state.accounts["a"].counter == 30
    assert state.last_emptied == "a"


def test_charged_tokens_cost_twice_their_number_over_the_weight() -> None:
    state = lane(TenantNoted(tenant="a", weight=4.0), QUEUED, STARTED, CHARGED)
    assert state.running["r1"].made_tokens == 10
    assert state.accounts["a"].counter == 30 + 2 * 10 / 4


def test_a_finished_request_moves_the_expected_length_of_answers() -> None:
    state = lane(QUEUED, STARTED, CHARGED, FINISHED)
    assert state.running == {}
    assert state.speed.output_share == pytest.approx(0.9 + 0.1 * 10 / 40)


def test_a_rejected_request_leaves_the_queue() -> None:
    rejected = LlmRequestRejected(request_id="r1", tenant="a", reason="too_large")
    state = lane(QUEUED, rejected)
    assert (state.waiting, list(state.accounts["a"].queue)) == ({}, [])


def test_progress_of_a_request_that_does_not_run_changes_no_counter() -> None:
    assert lane(CHARGED, FINISHED).accounts == lane().accounts
