"""Open requests of an endpoint are bounded; a clock that jumps frees and blocks nothing."""

from __future__ import annotations

from typing import Any

import pytest

from services.throttle.core import enqueue
from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.bus import clock
from shared.bus.clock import LedgerClock
from shared.contracts.endpoints import TokenBudget
from shared.contracts.llm import LlmRequestQueued, LlmRequestRejected
from shared.ledger.decider import Input
from tests.harness.decider import AT, run
from tests.services.throttle.llm import ended, endpoint, lane, local_request

HOUR_MS = 3_600_000


def decide(state: EndpointState, *inputs: Input, now: int = AT) -> list[Any]:
    return run(Throttle(), state, inputs, now)


def rejections(events: list[Any]) -> list[LlmRequestRejected]:
    return [event for event in events if isinstance(event, LlmRequestRejected)]


def test_requests_that_wait_or_run_are_bounded_per_tenant_and_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(enqueue, "MOST_WAITING", 5)
    tenants = ("a", "b", "c")
    state = lane(capacity=2, tenants=tenants, settings=endpoint(queue_limit=3))
    requests = [local_request(f"{t}{n}", t) for n in range(6) for t in tenants]
    refused = rejections(decide(state, *requests))
    assert (len(state.running), len(state.waiting)) == (2, 5)
    assert max(state.waiting_of.values()) <= 3
    assert len(refused) == len(requests) - 7
    assert {event.reason for event in refused} == {"queue_full"}
    details = " ".join(event.detail for event in refused)
    assert "endpoint: 'chat': limit of waiting requests (5) reached" in details
    assert all(event.retry_after_s for event in refused)


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_jumps_an_hour_frees_no_budget_for_good_and_blocks_for_no_hour(
    jump_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock jumps and is set right at once; the ledger's time goes on from its last record."""
    wall, passed_s = [AT], [0.0]
    monkeypatch.setattr(clock, "now_ms", lambda: wall[0])
    monkeypatch.setattr("shared.bus.clock.time.monotonic", lambda: passed_s[0])
    ledger = LedgerClock()
    budget = TokenBudget(holder="tenant", unit="tokens", limit=100, memory="window", period_s=60)
    forever = TokenBudget(holder="tenant", unit="tokens", limit=170)
    state = lane(settings=endpoint(budgets=(budget, forever), batch_tokens=None))
    last_at = AT

    def offer(*inputs: Input) -> list[Any]:
        nonlocal last_at
        last_at = ledger.now_ms(last_at)
        ledger.note_read()
        return decide(state, *inputs, now=last_at)

    offer(local_request("r1", prompt=50, most=40))
    offer(ended("r1", output=40))
    wall[0] += jump_ms
    offer(local_request("r2", prompt=1, most=1))
    wall[0] -= jump_ms
    blocked = rejections(offer(local_request("r3", prompt=10, most=20)))
    assert all(event.retry_after_s <= 70 for event in blocked if event.retry_after_s)
    passed_s[0] += 70
    wall[0] += 70_000
    accepted = offer(local_request("r4", prompt=10, most=20))
    assert any(isinstance(event, LlmRequestQueued) for event in accepted)
    spent = rejections(offer(local_request("r5", prompt=40, most=20)))
    assert [event.reason for event in spent] == ["tenant_tokens"]
