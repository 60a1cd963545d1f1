from __future__ import annotations

import pytest

from services.throttle.core.disciplines.seam import Throttled
from services.throttle.core.disciplines.shares import ServiceShare
from tests.services.throttle.core.disciplines.serving import BUSY, IDLE, a_request


def serve(guard: ServiceShare, at: int, **units: int) -> None:
    for tenant, prompt in units.items():
        guard.note_started(a_request(tenant=tenant, prompt=prompt), at)


def guard_after(seconds: int, **units_per_s: int) -> ServiceShare:
    guard = ServiceShare()
    for second in range(seconds):
        serve(guard, 1000 * second, **units_per_s)
    return guard


def test_a_tenant_with_more_than_the_factor_of_its_share_is_refused_under_overload() -> None:
    guard = guard_after(30, a=70, b=10, c=10)
    assert guard.refusal(a_request(), IDLE, 30_000) is None
    refused = guard.refusal(a_request(), BUSY, 30_000)
    assert isinstance(refused, Throttled)
    assert refused.reason == "service_share"
    assert guard.refusal(a_request(tenant="b"), BUSY, 30_000) is None


def test_after_the_wait_that_was_stated_it_may_retry() -> None:
    guard = guard_after(30, a=70, b=10, c=10)
    refused = guard.refusal(a_request(), BUSY, 30_000)
    assert refused is not None and refused.retry_after_ms is not None
    for second in range(30, 200):
        if 1000 * second > 30_000 + refused.retry_after_ms:
            break
        serve(guard, 1000 * second, b=10, c=10)
    assert guard.refusal(a_request(), BUSY, 30_000 + refused.retry_after_ms) is None


def test_the_factor_of_the_share_is_allowed() -> None:
    guard = guard_after(30, a=28, b=10, c=10)
    assert guard.refusal(a_request(), BUSY, 30_000) is None


def test_a_weight_makes_the_share_larger() -> None:
    guard = guard_after(30, a=70, b=10, c=10)
    guard.set_weight("a", 4)
    assert guard.refusal(a_request(), BUSY, 30_000) is None


def test_a_tenant_alone_or_too_early_is_not_refused() -> None:
    assert guard_after(30, a=70).refusal(a_request(), BUSY, 30_000) is None
    guard = guard_after(10, a=70, b=10, c=10)
    assert guard.refusal(a_request(), BUSY, 10_000) is None


def test_an_interaction_in_progress_is_not_cut() -> None:
    guard = guard_after(30, a=70, b=10, c=10)
    request = a_request()
    request.stage = 1
    assert guard.refusal(request, BUSY, 30_000) is None


def test_service_older_than_a_minute_is_forgotten() -> None:
    guard = guard_after(30, a=70, b=10, c=10)
    assert guard.refusal(a_request(), BUSY, 200_000) is None
    serve(guard, 200_000, b=10)
    assert list(guard.served) == ["b"]
    assert len(guard.steps) == 1


def test_output_counts_twice() -> None:
    guard = ServiceShare()
    guard.note_made(a_request(), 5, 0)
    assert guard.steps[0].units == 10


def test_a_factor_below_one_is_an_error() -> None:
    with pytest.raises(ValueError, match="factor"):
        ServiceShare(0.5)


def test_a_prompt_that_was_shorter_is_taken_back_where_it_was_charged() -> None:
    guard, request = ServiceShare(), a_request(prompt=1000)
    request.started_at = 0
    guard.note_started(request, 0)
    guard.note_made(request, 5, 30_000)
    guard.note_prompt(request, -990, 30_000)
    assert [step.by_tenant["a"] for step in guard.steps] == [10, 10]
