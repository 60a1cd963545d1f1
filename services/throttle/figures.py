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
    if not state.endpoint.drained and not all(up.drained for up in state.endpoint.upstreams):
        yield Figure("berth_llm_capacity_requests", state.capacity, label)
    oldest = next(iter(state.waiting.values()), None)
    at = now - state.stepped_ms
    wait_ms = max(0, at - oldest.served.queued_at) if oldest is not None else 0
    yield Figure("berth_llm_oldest_wait_seconds", wait_ms / 1000, label)
    yield Figure("berth_llm_tokens_per_second", state.speed.tokens_per_s() or 0.0, label)
    load = state.load
    ratio = load.held_tokens / load.batch_tokens if load.batch_tokens else 0
    yield Figure("berth_llm_batch_ratio", ratio, label)
    yield Figure("berth_llm_service_gap_tokens", state.discipline.order.spread, label)
