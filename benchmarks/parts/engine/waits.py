"""The wait of a request as it was estimated at its arrival, and as it was, from the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from shared.contracts.base import Event
from shared.contracts.llm import LlmRequestQueued, LlmRequestStarted

LEAST_WAIT_S = 0.5
"""Shorter waits have no ratio worth a number."""


def wait_ratios(events: Iterable[Event]) -> dict[str, list[float]]:
    """Return estimated wait by real wait for each `user`, which names the phase."""
    by_id: dict[str, LlmRequestQueued] = {}
    ratios: dict[str, list[float]] = {}
    for event in events:
        if isinstance(event, LlmRequestQueued):
            by_id[event.request_id] = event
        elif isinstance(event, LlmRequestStarted):
            queued, waited_s = by_id.pop(event.request_id, None), event.waited_ms / 1000
            if queued is None or queued.wait_s is None:
                continue
            if waited_s > LEAST_WAIT_S:
                ratios.setdefault(queued.user, []).append(queued.wait_s / waited_s)
    return ratios


def quantiles(ratios: Iterable[float]) -> dict[str, float | int]:
    """Return `p10`, `p50` and `p90`, and of how many requests."""
    ordered = sorted(ratios)
    row: dict[str, float | int] = {"requests": len(ordered)}
    for part in (10, 50, 90):
        row[f"p{part}"] = round(ordered[len(ordered) * part // 100], 3) if ordered else 0.0
    return row
