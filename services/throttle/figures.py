"""What the throttle's state says of an endpoint in numbers, for dashboards and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from services.throttle.core.state import Lane
from shared.contracts.base import Millis
from shared.telemetry.figures import Figure


def figures(lane: Lane, now: Millis) -> Iterator[Figure]:
    """Of one lane; nothing of a lane without an endpoint."""
    if lane.endpoint is None:
        return
    label = (lane.name,)
    yield Figure("berth_llm_requests", len(lane.waiting), (*label, "waiting"))
    yield Figure("berth_llm_requests", len(lane.running), (*label, "running"))
    oldest = min((request.queued_at for request in lane.waiting.values()), default=now)
    yield Figure("berth_llm_oldest_wait_seconds", max(0, now - oldest) / 1000, label)
    speed = lane.speed.tokens_per_s(lane.endpoint.tokens_per_s)
    yield Figure("berth_llm_tokens_per_second", speed, label)
    held = sum(request.held for request in lane.running.values())
    yield Figure("berth_llm_batch_ratio", held / lane.room_tokens if lane.room_tokens else 0, label)
    counters = [account.counter for account in lane.accounts.values() if account.line]
    gap = max(counters) - min(counters) if counters else 0.0
    yield Figure("berth_llm_service_gap_tokens", gap, label)
