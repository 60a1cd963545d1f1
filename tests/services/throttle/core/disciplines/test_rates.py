from __future__ import annotations

import pytest

from services.throttle.core.disciplines.rates import (
    LONGEST_INTERACTION,
    InteractionRate,
    RequestRate,
)
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import Guard, Throttled
from tests.services.throttle.core.disciplines.serving import BUSY, IDLE, a_request


def queue(guard: Guard, *times: int, tenant: str = "a") -> None:
    for at in times:
        guard.note_queued(a_request(tenant=tenant, at=at))


def call(stage: int) -> ServedRequest:
    request = a_request()
    request.interaction, request.stage = "i", stage
    return request


def test_a_request_rate_holds_also_while_the_engine_is_idle() -> None:
    guard = RequestRate(2)
    queue(guard, 1000, 31_000)
    refused = guard.refusal(a_request(), IDLE, 50_000)
    assert refused == Throttled("request_rate", 11_000)
    assert guard.refusal(a_request(), IDLE, 61_000) is None
    assert guard.refusal(a_request(tenant="b"), IDLE, 50_000) is None


def test_no_minute_has_more_requests_than_the_limit() -> None:
    guard, queued = RequestRate(3), []
    for now in range(0, 300_000, 700):
        if guard.refusal(a_request(), IDLE, now) is None:
            queue(guard, now)
            queued.append(now)
    for at in queued:
        assert sum(at <= other < at + 60_000 for other in queued) <= 3


def test_an_interaction_is_only_refused_under_overload_and_at_its_first_call() -> None:
    guard = InteractionRate(1, 100)
    queue(guard, 0)
    assert guard.refusal(call(0), IDLE, 10) is None
    assert guard.refusal(call(0), BUSY, 10) == Throttled("tenant_rate", 59_990)
    assert guard.refusal(call(1), BUSY, 10) is None
    assert guard.refusal(call(0), BUSY, 60_000) is None


def test_a_limit_of_the_application_is_that_of_each_tenant() -> None:
    guard = InteractionRate(5, 2)
    queue(guard, 0, 5, tenant="b")
    assert guard.refusal(call(0), BUSY, 10) is None
    queue(guard, 0, 5)
    assert guard.refusal(call(0), BUSY, 10) == Throttled("application_rate", 59_990)


def test_an_interaction_without_end_loses_its_privilege() -> None:
    guard = InteractionRate(1, 100)
    queue(guard, 0)
    assert guard.refusal(call(LONGEST_INTERACTION - 1), BUSY, 10) is None
    assert guard.refusal(call(LONGEST_INTERACTION), BUSY, 10) is not None


def test_a_limit_below_one_is_an_error() -> None:
    with pytest.raises(ValueError, match="limit: 0"):
        RequestRate(0)
