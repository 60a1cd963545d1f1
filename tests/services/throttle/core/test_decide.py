from __future__ import annotations

from typing import Any

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.endpoints import EndpointDeleted
from shared.contracts.llm import (
    EndpointCapacityNoted,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
)
from shared.contracts.rejected import InputRejected
from shared.ledger.decider import Input, Undecodable
from tests.harness.decider import AT, an_input, given, run, run_facts, wake
from tests.harness.hash_seeds import printed_under_two_hash_seeds
from tests.services.throttle.llm import (
    BATCH,
    command,
    ended,
    endpoint,
    lane,
    local_request,
    made,
    observed,
)

THROTTLE = Throttle()


def names(events: list[Event]) -> list[str]:
    return [event.TYPE.removesuffix(".v1") for event in events]


def decide(state: EndpointState, *inputs: Input, now: int = AT) -> list[Event]:
    return run(THROTTLE, state, inputs, now)


def started(events: list[Event]) -> list[str]:
    return [event.request_id for event in events if isinstance(event, LlmRequestStarted)]


def test_a_request_that_fits_is_queued_and_starts_in_the_same_record() -> None:
    assert decide(lane(), command("r1", id="c1")) == [
        CommandAccepted(command_id="c1", command_type="llm.serve.v1", of="r1", tenant="a"),
        LlmRequestQueued(
            request_id="r1",
            tenant="a",
            endpoint="chat",
            prompt_tokens=10,
            max_output_tokens=10,
            wait_s=0.0,
        ),
        LlmRequestStarted(request_id="r1", tenant="a", waited_ms=0),
    ]


def test_a_request_of_the_proxy_has_events_and_no_answer() -> None:
    assert names(decide(lane(), local_request("r1"))) == ["llm.queued", "llm.started"]


def test_no_request_starts_before_an_engine_was_seen_and_all_that_fit_afterwards() -> None:
    state = lane(capacity=0)
    decide(state, *(local_request(f"r{n}") for n in range(3)))
    assert THROTTLE.next_wake(state) == AT + 600_000
    events = decide(state, observed(2))
    assert events[0] == EndpointCapacityNoted(endpoint="chat", requests=2)
    assert started(events) == ["r0", "r1"]
    assert decide(state, observed(2)) == []


def test_running_requests_never_exceed_the_capacity_also_when_it_falls() -> None:
    state = lane(capacity=2)
    decide(state, *(local_request(f"r{n}") for n in range(5)))
    assert list(state.running) == ["r0", "r1"]
    decide(state, observed(1))
    assert started(decide(state, ended("r0"))) == []
    assert started(decide(state, ended("r1"))) == ["r2"]


def test_a_finished_request_makes_room_for_the_next_one() -> None:
    state = lane()
    decide(state, local_request("r1", prompt=BATCH - 10))
    assert names(decide(state, local_request("r2", "b"))) == ["llm.queued"]
    events = decide(state, ended("r1"), now=AT + 3000)
    assert names(events) == ["llm.finished", "llm.started"]
    assert isinstance(events[-1], LlmRequestStarted)
    assert (events[-1].request_id, events[-1].waited_ms) == ("r2", 3000)


def test_the_tenant_that_was_served_least_goes_next() -> None:
    state = lane(capacity=1)
    decide(state, local_request("big", "a", prompt=600))
    decide(state, local_request("a1", "a"), local_request("b1", "b"))
    assert started(decide(state, ended("big"))) == ["b1"]


def test_no_request_passes_a_first_one_that_does_not_fit() -> None:
    state = lane()
    decide(state, local_request("r0", "a", prompt=700, most=100))
    decide(state, local_request("b1", "b", prompt=400, most=400), now=AT + 1)
    little = local_request("b2", "b", prompt=1, most=1)
    assert names(decide(state, little, now=AT + 2)) == ["llm.queued"]
    assert list(state.waiting) == ["b1", "b2"]


def test_the_llm_weight_of_a_tenant_counts_and_not_that_of_its_gpus() -> None:
    state = lane()
    registered = TenantRegistered(tenant="c", default_pool="main", weight=9.0, llm_weight=4.0)
    assert decide(state, an_input(registered, "access")) == [TenantNoted(tenant="c", weight=4.0)]
    assert decide(state, an_input(registered, "access")) == []
    retired = an_input(TenantRetired(tenant="c"), "access")
    assert decide(state, retired) == [TenantNoted(tenant="c", active=False, weight=4.0)]


def test_a_request_that_waited_too_long_is_rejected_when_its_time_is_up() -> None:
    state = lane(capacity=0, settings=endpoint(queue_timeout_s=2.0))
    decide(state, local_request("r1"))
    decide(state, local_request("r2"), now=AT + 1500)
    assert wake(THROTTLE, state, AT + 1999) == []
    (event,) = wake(THROTTLE, state, AT + 2000)
    assert isinstance(event, LlmRequestRejected)
    assert (event.request_id, event.reason) == ("r1", "queue_timeout")
    assert event.detail == "wait: longer than 2 s (queue_timeout_s)"
    assert list(state.waiting) == ["r2"]


def test_a_deleted_endpoint_rejects_what_waits_and_lets_the_rest_end() -> None:
    state = lane(capacity=1)
    decide(state, local_request("r1"), local_request("r2"))
    deleted = an_input(EndpointDeleted(endpoint="chat", partition=0), "access")
    events = decide(state, deleted)
    assert names(events) == ["endpoint.deleted", "llm.rejected"]
    assert isinstance(events[1], LlmRequestRejected)
    assert (events[1].request_id, events[1].reason) == ("r2", "endpoint_deleted")
    assert names(decide(state, ended("r1"))) == ["llm.finished"]
    (rejected,) = decide(state, local_request("r3"))
    assert isinstance(rejected, LlmRequestRejected)
    assert rejected.reason == "unknown_endpoint"


def test_the_deletion_of_another_endpoint_changes_nothing() -> None:
    deleted = an_input(EndpointDeleted(endpoint="other", partition=3), "access")
    assert decide(lane(), deleted) == []


def test_settings_of_another_lane_are_not_restated() -> None:
    assert decide(lane(), an_input(endpoint(partition=2), "access")) == []
    assert decide(lane(), an_input(endpoint(), "access")) == []
    changed = endpoint(queue_limit=3)
    assert decide(lane(), an_input(changed, "access")) == [changed]


def test_an_endpoint_made_smaller_rejects_what_fits_no_more() -> None:
    state = lane(capacity=0)
    decide(state, local_request("r1", prompt=600))
    decide(state, an_input(endpoint(batch_tokens=100), "access"))
    (capacity, rejected) = decide(state, observed(4))
    assert isinstance(rejected, LlmRequestRejected)
    assert (rejected.reason, rejected.detail) == (
        "too_large",
        "tokens: 610: the endpoint runs 100 at once (batch_tokens)",
    )
    assert names([capacity]) == ["llm.capacity-noted"]


def test_bytes_that_are_no_request_are_rejected_once() -> None:
    undecodable = Undecodable("llm.requests", 0, 7, "not JSON", "f" * 64)
    (event,) = decide(lane(), an_input(undecodable, "llm.requests"))
    assert isinstance(event, InputRejected)
    assert event.reason == "not JSON"


def test_each_event_carries_the_trace_of_its_request() -> None:
    state = lane(capacity=0)
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    run_facts(THROTTLE, state, [local_request("r1")._replace(traceparent=parent)])
    assert state.waiting["r1"].traceparent.startswith("00-" + "a" * 32)
    (_, start) = run_facts(THROTTLE, state, [observed(1)])
    assert start.traceparent.startswith("00-" + "a" * 32)


@pytest.mark.parametrize("level", [1e13])
def test_counters_are_rebased_before_they_lose_precision(level: float) -> None:
    state = lane(capacity=0)
    decide(state, local_request("a1", "a"))
    order: Any = state.discipline.order
    order.accounts.of("a").counter = level
    order.queue.reindex()
    assert names(decide(state, made())) == ["llm.counters-rebased"]
    assert order.accounts.of("a").counter == 0.0
    assert decide(state, made()) == []


def test_a_fresh_lane_rejects_what_comes_before_its_endpoint() -> None:
    (event,) = decide(given(THROTTLE), local_request("r1"))
    assert isinstance(event, LlmRequestRejected)
    assert event.reason == "unknown_endpoint"


@pytest.mark.process
def test_decisions_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "from tests.services.throttle.core.test_decide import *\n"
        "state = lane(tenants=tuple('abcdef'), capacity=2)\n"
        "events = decide(state, *(local_request(f'{t}{n}', t) for n in '12' for t in 'fedcba'))\n"
        "events += decide(state, ended('f0', 'e0'))\n"
        "print([event.model_dump_json() for event in events])\n"
    )
    first, second = printed_under_two_hash_seeds(script)
    assert first == second
