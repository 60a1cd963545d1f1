"""Gauges of an endpoint, for dashboards and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from services.throttle.core.state import EndpointState
from shared.contracts.base import Millis
from shared.telemetry.figures import Figure


def figures(state: EndpointState, now: Millis) -> Iterator[Figure]:
    """Yield the gauges of one lane; a lane without an endpoint has none."""
    if state.endpoint is None:
        return
    label = (state.endpoint_name,)
    yield Figure("berth_llm_requests", len(state.waiting), (*label, "waiting"))
    yield Figure("berth_llm_requests", len(state.running), (*label, "running"))
    oldest = min((request.queued_at for request in state.waiting.values()), default=now)
    yield Figure("berth_llm_oldest_wait_seconds", max(0, now - oldest) / 1000, label)
    speed = state.speed.tokens_per_s(state.endpoint.tokens_per_s)
    yield Figure("berth_llm_tokens_per_second", speed, label)
    held_tokens = sum(request.held_tokens for request in state.running.values())
    ratio = held_tokens / state.batch_tokens if state.batch_tokens else 0
    yield Figure("berth_llm_batch_ratio", ratio, label)
    counters = [account.counter for account in state.accounts.values() if account.queue]
    gap = max(counters) - min(counters) if counters else 0.0
    yield Figure("berth_llm_service_gap_tokens", gap, label)
