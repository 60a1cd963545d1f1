"""How long a request will wait: from what the engine was seen to do, not from a constant."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

from services.throttle.core.state import INPUT_PRICE, OUTPUT_PRICE, Lane, Request
from services.throttle.core.vtc import fits, joining_counter

LOOKED_AT = 32
"""Starts that are gone through one by one; those behind them are taken to go at the same pace."""


class Wait(NamedTuple):
    """Requests served before, and estimated wall seconds until the start."""

    ahead: int
    wait_s: float


@dataclass(slots=True)
class Expected:
    """A request in the batch of a moment to come; it is done when `left` is used up."""

    held: float
    remaining: float
    left: float

    @classmethod
    def of(cls, request: Request, share: float) -> Expected:
        return cls(request.held, request.remaining, max(share * request.remaining, 1.0))


def wait_of(lane: Lane, last: Request) -> Wait:
    """Goes through the starts before it as the engine would, at its measured pace."""
    line = those_ahead(lane, last)
    ahead = len(line)
    if lane.endpoint is None or (not ahead and fits(lane.running.values(), last, lane.room_tokens)):
        return Wait(ahead, 0.0)
    looked_at = [*line, last][:LOOKED_AT]
    tokens = tokens_until_started(lane, looked_at) * (ahead + 1) / len(looked_at)
    return Wait(ahead, tokens / lane.speed.tokens_per_s(lane.endpoint.tokens_per_s))


def tokens_until_started(lane: Lane, line: list[Request]) -> float:
    """Output tokens that the engine makes until the last of the line is in the batch."""
    share = lane.speed.output_share
    batch = [Expected.of(request, share) for request in lane.running.values()]
    tokens = 0.0
    for request in line:
        more = Expected.of(request, share)
        while batch and not fits(batch, more, lane.room_tokens):
            step = min(each.left for each in batch)
            tokens += step * len(batch)
            batch = [after(each, step) for each in batch if each.left > step]
        batch.append(more)
    return tokens


def after(each: Expected, step: float) -> Expected:
    return Expected(each.held + step, each.remaining - step, each.left - step)


def those_ahead(lane: Lane, last: Request) -> list[Request]:
    """Who is served before `last`, if every answer is as long as expected.

    `last` may be waiting already, or be about to join the end of its tenant's line.
    """
    share = lane.speed.output_share
    lines = {t: [lane.waiting[r] for r in a.line] for t, a in lane.accounts.items() if a.line}
    counters = {tenant: lane.accounts[tenant].counter for tenant in lines}
    if last.request_id not in lane.waiting:
        counters[last.tenant] = joining_counter(lane, last.tenant)
        lines.setdefault(last.tenant, []).append(last)
    heap = [(counters[tenant], line[0].queued_at, tenant, 0) for tenant, line in lines.items()]
    heapq.heapify(heap)
    ahead: list[Request] = []
    while heap:
        counter, _, tenant, place = heapq.heappop(heap)
        request = lines[tenant][place]
        if request.request_id == last.request_id:
            return ahead
        ahead.append(request)
        if place + 1 < len(lines[tenant]):
            counter += cost(request, share) / lane.accounts[tenant].weight
            following = lines[tenant][place + 1]
            heapq.heappush(heap, (counter, following.queued_at, tenant, place + 1))
    return ahead


def cost(request: Request, share: float) -> float:
    return INPUT_PRICE * request.prompt_tokens + OUTPUT_PRICE * share * request.max_output_tokens
