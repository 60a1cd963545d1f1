from __future__ import annotations

import pytest

from services.throttle.core.estimate import (
    MAX_STARTS,
    ExpectedRequest,
    WaitEstimate,
    estimate_wait,
    expected_cost,
    requests_ahead,
)
from services.throttle.core.state import EndpointState, LlmRequest
from tests.services.throttle.llm import BATCH, lane


def request(name: str, tenant: str = "a", prompt: int = 10, most: int = 10) -> LlmRequest:
    return LlmRequest(name, tenant, prompt, most, queued_at=0)


def busy_state(*waiting: LlmRequest) -> EndpointState:
    """Return a state whose batch is full for the next 100 output tokens, one second of work."""
    state = lane()
    state.running["r0"] = request("r0", prompt=BATCH - 100, most=100)
    for item in waiting:
        state.waiting[item.request_id] = item
        state.accounts[item.tenant].queue.append(item.request_id)
    return state


def test_a_request_that_fits_now_does_not_wait() -> None:
    assert estimate_wait(lane(), request("r1")) == WaitEstimate(0, 0.0)


def test_the_first_waits_until_the_running_one_ends() -> None:
    estimate = estimate_wait(busy_state(), request("r1", most=100))
    assert estimate.ahead == 0
    assert estimate.wait_s == pytest.approx(1.0)


def test_the_measured_speed_counts_once_a_second_was_measured() -> None:
    state = busy_state()
    state.speed.tokens, state.speed.busy_ms = 50.0, 1000.0
    assert estimate_wait(state, request("r1", most=100)).wait_s == pytest.approx(2.0)


def test_a_tenant_waits_behind_its_own_requests_but_not_behind_a_busier_tenant() -> None:
    state = busy_state(*(request(f"a{n}", "a") for n in range(3)))
    state.accounts["a"].counter = 5.0
    assert [ahead.request_id for ahead in requests_ahead(state, request("a3", "a"))] == [
        "a0",
        "a1",
        "a2",
    ]
    state.accounts["b"].counter = 6.0
    assert len(requests_ahead(state, request("b1", "b"))) == 1


def test_starts_beyond_the_simulated_ones_are_extrapolated() -> None:
    large = [request(f"a{n}", prompt=BATCH - 100, most=100) for n in range(2 * MAX_STARTS)]
    estimate = estimate_wait(busy_state(*large[:-1]), large[-1])
    assert estimate.ahead == 2 * MAX_STARTS - 1
    assert estimate.wait_s == pytest.approx(2 * MAX_STARTS, rel=0.05)


def test_an_expected_request_ends_after_its_share_of_the_answer() -> None:
    expected = ExpectedRequest.of(request("r1", prompt=10, most=100), 0.25)
    assert expected == ExpectedRequest(10, 100, 25.0)
    assert expected.after(5) == ExpectedRequest(15, 95, 20.0)


def test_the_expected_cost_prices_output_twice() -> None:
    assert expected_cost(request("r1", prompt=10, most=100), 0.5) == 10 + 2 * 50
