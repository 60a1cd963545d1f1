from __future__ import annotations

import pytest

from services.throttle.core.state import EndpointState, LlmRequest
from services.throttle.core.vtc import (
    fits,
    joining_counter,
    next_request,
    output_charge,
    prompt_charge,
)
from shared.contracts.bookkeeping import TenantNoted
from tests.services.throttle.llm import lane


def request(name: str, tenant: str = "a", prompt: int = 10, most: int = 10) -> LlmRequest:
    return LlmRequest(name, tenant, prompt, most, queued_at=0)


def state_with(*waiting: LlmRequest, **counters: float) -> EndpointState:
    state = lane()
    for tenant, counter in counters.items():
        state.accounts[tenant].counter = counter
    for item in waiting:
        state.waiting[item.request_id] = item
        state.accounts[item.tenant].queue.append(item.request_id)
    return state


def test_the_smallest_counter_goes_next() -> None:
    state = state_with(request("a1", "a"), request("b1", "b"), a=2.0, b=1.0)
    upcoming = next_request(state)
    assert upcoming is not None
    assert upcoming.request_id == "b1"


def test_equal_counters_go_by_arrival_and_then_by_name() -> None:
    late = LlmRequest("a1", "a", 10, 10, queued_at=5)
    assert next_request(state_with(late, request("b1", "b"))) == request("b1", "b")
    assert next_request(state_with(request("b1", "b"), request("a1", "a"))) == request("a1", "a")


def test_an_empty_queue_has_no_next_request() -> None:
    assert next_request(lane()) is None


@pytest.mark.parametrize(("batch_tokens", "expected"), [(40, True), (39, False)])
def test_two_equal_requests_need_room_for_both_peaks(batch_tokens: int, expected: bool) -> None:
    assert fits([request("r1")], request("r2"), batch_tokens) is expected


def test_a_short_answer_ends_before_a_long_one_grows() -> None:
    """The peaks are 100 + 10 and 10 + 10 + 2 * 10 tokens: never both at once."""
    long, short = request("long", prompt=10, most=100), request("short", prompt=10, most=10)
    assert fits([long], short, 110)
    assert not fits([long], short, 109)


def test_a_tenant_with_a_queue_joins_with_its_own_counter() -> None:
    assert joining_counter(state_with(request("a1"), a=1.0, b=9.0), "a") == 1.0


def test_a_tenant_from_idle_is_lifted_to_the_smallest_waiting_counter() -> None:
    assert joining_counter(state_with(request("a1"), a=7.0, b=1.0), "b") == 7.0
    assert joining_counter(state_with(request("a1"), a=7.0, b=8.0), "b") == 8.0


def test_with_no_tenant_waiting_the_last_one_to_leave_counts() -> None:
    state = state_with(a=7.0)
    assert joining_counter(state, "b") == 0.0
    state.last_emptied = "a"
    assert joining_counter(state, "b") == 7.0


def test_charges_are_divided_by_the_weight() -> None:
    state = lane(TenantNoted(tenant="a", weight=2.0))
    assert prompt_charge(state, request("r1", prompt=10)) == 5.0
    assert output_charge(state, "a", 10) == 10.0
