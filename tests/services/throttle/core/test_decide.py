from __future__ import annotations

from collections.abc import Callable

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
    TokensMade,
)
from shared.ledger.decider import Input, Undecodable
from shared.testing.decider import AT, an_input, given, run, run_facts
from shared.testing.hash_seeds import printed_under_two_hash_seeds
from tests.services.throttle.llm import (
    BATCH,
    ENDPOINT,
    command,
    lane,
    local_request,
    made,
    serve_command,
)

THROTTLE = Throttle()


def names(events: list[Event]) -> list[str]:
    return [event.TYPE.removesuffix(".v1") for event in events]


def decide(state: EndpointState, *inputs: Input, now: int = AT) -> list[Event]:
    return run(THROTTLE, state, inputs, now)


def test_a_request_that_fits_is_queued_and_starts_at_once() -> None:
    state = lane()
    assert decide(state, command("r1", id="c1")) == [
        CommandAccepted(command_id="c1", command_type="llm.serve.v1", of="r1", tenant="a"),
        LlmRequestQueued(
            request_id="r1",
            tenant="a",
            endpoint="chat",
            prompt_tokens=10,
            max_output_tokens=10,
            ahead=0,
            wait_s=0.0,
        ),
        LlmRequestStarted(request_id="r1", tenant="a", waited_ms=0, counter=10.0),
    ]


def test_a_request_of_the_proxy_has_events_and_no_answer() -> None:
    assert names(decide(lane(), local_request("r1"))) == ["llm.queued", "llm.started"]


def test_the_prompt_is_charged_at_the_start_and_the_output_as_it_is_made() -> None:
    state = lane()
    decide(state, local_request("r1", prompt=30, most=50))
    assert state.accounts["a"].counter == 30
    decide(state, made(r1=7))
    assert state.accounts["a"].counter == 30 + 2 * 7
    assert state.running["r1"].made_tokens == 7


def test_a_weight_divides_every_charge() -> None:
    state = lane(TenantNoted(tenant="a", weight=4.0))
    decide(state, local_request("r1", prompt=40, most=50), made(r1=10))
    assert state.accounts["a"].counter == 40 / 4 + 20 / 4


def test_a_finished_request_says_what_it_was_charged() -> None:
    state = lane()
    decide(state, local_request("r1", prompt=30, most=50))
    assert decide(state, made(r1=-20), now=AT + 5000) == [
        TokensCharged(endpoint="chat", made=(TokensMade(request_id="r1", tokens=20, done=True),)),
        LlmRequestFinished(
            request_id="r1", tenant="a", prompt_tokens=30, output_tokens=20, served_ms=5000
        ),
    ]
    assert state.running == {}


def test_a_finished_request_makes_room_for_the_next_one() -> None:
    state = lane()
    decide(state, local_request("r1", prompt=BATCH - 10))
    assert names(decide(state, local_request("r2", "b"))) == ["llm.queued"]
    events = decide(state, made(r1=-1), now=AT + 3000)
    assert names(events) == ["llm.charged", "llm.finished", "llm.started"]
    assert isinstance(events[-1], LlmRequestStarted)
    assert (events[-1].request_id, events[-1].waited_ms) == ("r2", 3000)


def test_the_tenant_that_was_served_least_goes_next() -> None:
    state = lane()
    decide(state, local_request("big", "a", prompt=990))
    decide(state, local_request("a1", "a", most=100), local_request("b1", "b", most=100))
    state.accounts["b"].counter = 400.0
    events = decide(state, made(big=-10))
    started = [e.request_id for e in events if isinstance(e, LlmRequestStarted)]
    assert started == ["b1", "a1"]


def test_no_request_passes_a_first_one_that_does_not_fit() -> None:
    state = lane()
    decide(state, local_request("r0", "a", prompt=700, most=100))
    decide(state, local_request("b1", "b", prompt=400, most=400), now=AT + 1)
    little = local_request("a2", "a", prompt=1, most=1)
    assert names(decide(state, little, now=AT + 2)) == ["llm.queued"]
    assert list(state.waiting) == ["b1", "a2"]


def test_a_tenant_that_was_idle_gets_no_credit_for_it() -> None:
    state = lane(tenants=("a", "b", "c"))
    decide(state, local_request("a1", "a", prompt=990), local_request("a2", "a", most=100))
    decide(state, local_request("b1", "b", most=100))
    assert state.accounts["b"].counter == state.accounts["a"].counter == 990


def test_the_first_to_join_an_empty_queue_starts_from_the_last_that_left_it() -> None:
    """The branch of the paper's algorithm 2 that its published code leaves out."""
    state = lane()
    decide(state, local_request("a1", "a", prompt=300, most=100), made(a1=50))
    assert state.accounts["a"].counter == 400
    decide(state, local_request("b1", "b", prompt=1, most=1))
    assert state.accounts["b"].counter == 400 + 1


def test_a_counter_is_never_lowered() -> None:
    state = lane()
    state.accounts["b"].counter = 9000.0
    decide(
        state,
        local_request("a1", "a", prompt=990),
        local_request("a2", "a"),
        local_request("b1", "b"),
    )
    assert state.accounts["b"].counter == 9000


def test_requests_of_one_tenant_are_served_in_their_order() -> None:
    state = lane()
    decide(state, local_request("r0", prompt=990))
    decide(state, *[local_request(f"r{n}", most=100) for n in range(1, 5)])
    events = decide(state, made(r0=-10))
    started = [e.request_id for e in events if isinstance(e, LlmRequestStarted)]
    assert started == ["r1", "r2", "r3", "r4"]


@pytest.mark.parametrize("build", [local_request, command])
def test_a_request_that_can_never_fit_is_refused(build: Callable[..., Input]) -> None:
    *_, event = decide(lane(), build("r1", prompt=600, most=500))
    assert isinstance(event, LlmRequestRejected)
    assert (event.reason, event.retry_after_s) == ("too_large", None)
    assert "tokens: 1100: the batch holds 1000" in event.detail


def test_an_unknown_tenant_or_endpoint_is_refused_and_answered() -> None:
    state = lane()
    answer, rejected = decide(state, command("r1", "ghost"))
    assert isinstance(answer, CommandRefused)
    assert isinstance(rejected, LlmRequestRejected)
    assert answer.reason == rejected.reason == "unknown_tenant"
    fresh = given(THROTTLE)
    assert [e.reason for e in decide(fresh, command("r1")) if isinstance(e, CommandRefused)] == [
        "unknown_endpoint"
    ]


def test_a_retired_tenants_waiting_requests_are_served_and_new_ones_rejected() -> None:
    state = lane()
    decide(state, local_request("r0", prompt=990), local_request("r1"))
    decide(state, an_input(TenantRetired(tenant="a"), "access"))
    (event,) = decide(state, local_request("r2"))
    assert isinstance(event, LlmRequestRejected)
    assert event.reason == "unknown_tenant"
    assert "llm.started" in names(decide(state, made(r0=-1)))


def test_a_command_that_names_another_tenant_is_refused_without_an_event_of_the_request() -> None:
    (event,) = decide(lane(), an_input(serve_command("r1", "a"), "llm.requests", tenant="b"))
    assert isinstance(event, CommandRefused)
    assert (event.reason, event.tenant) == ("tenant_mismatch", "b")


def test_a_request_id_in_use_by_another_tenant_is_refused() -> None:
    state = lane()
    decide(state, command("r1", "a"))
    (event,) = decide(state, command("r1", "b"))
    assert isinstance(event, CommandRefused)
    assert event.reason == "request_id_taken"


def test_a_full_queue_rejects_with_an_estimate_of_when_to_retry() -> None:
    throttle = Throttle(queue_limit=2)
    state = lane(throttle=throttle)
    waiting = [local_request(name, prompt=600) for name in ("r1", "r2")]
    run(throttle, state, [local_request("r0", prompt=500, most=500), *waiting])
    (event,) = run(throttle, state, [local_request("r3")])
    assert isinstance(event, LlmRequestRejected)
    assert event.reason == "queue_full"
    assert event.retry_after_s == pytest.approx(5.0, rel=0.2)
    assert names(run(throttle, state, [local_request("b1", "b")])) == ["llm.queued"]


def test_a_rejected_request_may_be_tried_again_under_its_id() -> None:
    throttle = Throttle(queue_limit=1)
    state = lane(throttle=throttle)
    run(
        throttle, state, [local_request("r0", prompt=990), local_request("r1"), local_request("r2")]
    )
    run(throttle, state, [made(r0=-1)])
    assert names(run(throttle, state, [local_request("r2")])) == ["llm.queued", "llm.started"]


def test_a_request_id_is_accepted_once_even_after_its_end() -> None:
    state = lane()
    decide(state, command("r1"), made(r1=-1))
    (event,) = decide(state, command("r1", id="again"))
    assert isinstance(event, CommandAccepted)
    assert event.duplicate
    assert decide(state, local_request("r1")) == []


def test_a_command_delivered_twice_is_answered_once() -> None:
    state = lane()
    one = command("r1", id="c1")
    assert len(decide(state, one, one)) == 3
    assert decide(state, one) == []


def test_progress_of_unknown_requests_repeats_and_excess_tokens_are_not_charged() -> None:
    state = lane()
    decide(state, local_request("r1", most=10))
    events = decide(state, made(unknown=5, r1=99))
    assert names(events) == ["llm.charged", "llm.finished"]
    assert isinstance(events[1], LlmRequestFinished)
    assert events[1].output_tokens == 10
    assert decide(state, made(r1=5)) == []


def test_a_first_request_that_no_longer_fits_does_not_block_for_ever() -> None:
    state = lane()
    decide(
        state,
        local_request("r0", prompt=900),
        local_request("big", prompt=500, most=400),
        local_request("small"),
    )
    smaller = ENDPOINT.model_copy(update={"batch_tokens": 100})
    decide(state, an_input(smaller, "access"))
    events = decide(state, made(r0=-1))
    assert names(events) == ["llm.charged", "llm.finished", "llm.rejected", "llm.started"]


def test_access_is_restated_once() -> None:
    state = given(THROTTLE)
    inputs = [
        an_input(ENDPOINT, "access"),
        an_input(ENDPOINT.model_copy(update={"endpoint": "other", "partition": 3}), "access"),
        an_input(TenantRegistered(tenant="a", default_pool="p", weight=2.0), "access"),
        an_input(TenantRetired(tenant="unknown"), "access"),
    ]
    assert decide(state, *inputs, *inputs) == [ENDPOINT, TenantNoted(tenant="a", weight=2.0)]
    retired = an_input(TenantRetired(tenant="a"), "access")
    assert decide(state, retired, retired) == [TenantNoted(tenant="a", active=False, weight=2.0)]


def test_undecodable_bytes_are_rejected() -> None:
    bad = an_input(Undecodable("llm.requests", 0, 3, "not JSON", "0" * 64), "llm.requests")
    assert names(decide(lane(), bad)) == ["input.rejected"]


def test_later_events_of_a_request_carry_its_trace() -> None:
    state = lane()
    trace = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
    run(THROTTLE, state, [command("r1", traceparent=trace)])
    facts = run_facts(THROTTLE, state, [made(r1=-1)])
    assert [fact.traceparent for fact in facts] == ["", trace]


SCRIPT = """
from shared.contracts.codec import encode_event
from services.throttle.core.decide import Throttle
from shared.testing.decider import run
from tests.services.throttle.llm import local_request, lane, made
state = lane(tenants=tuple("abcdefgh"))
names = [f"{t}{n}" for n in range(6) for t in "hgfedcba"]
for event in run(Throttle(), state, [local_request(n, n[0], 50, 100) for n in names]):
    print(event.TYPE, encode_event(event).decode())
while state.running:
    progress = {name: -50 for name in state.running}
    for event in run(Throttle(), state, [made(**progress)]):
        print(event.TYPE, encode_event(event).decode())
"""


@pytest.mark.process
def test_two_hash_seeds_give_the_same_decisions() -> None:
    outputs = printed_under_two_hash_seeds(SCRIPT)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("llm.finished.v1") == 48
