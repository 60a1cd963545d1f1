"""Estimates how long a request will wait, from the measured speed of the engine."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

from services.throttle.core.state import INPUT_PRICE, OUTPUT_PRICE, EndpointState, LlmRequest
from services.throttle.core.vtc import fits, joining_counter

MAX_STARTS = 32
"""Starts that are simulated one by one; those behind them are taken to go at the same pace."""


class WaitEstimate(NamedTuple):
    """Requests served before this one, and the estimated wall seconds until its start."""

    ahead: int
    wait_s: float


@dataclass(slots=True)
class ExpectedRequest:
    """A request in a future batch; it is complete when `expected_tokens` are used up."""

    held_tokens: float
    remaining_tokens: float
    expected_tokens: float

    @classmethod
    def of(cls, request: LlmRequest, output_share: float) -> ExpectedRequest:
        remaining = request.remaining_tokens
        return cls(request.held_tokens, remaining, max(output_share * remaining, 1.0))

    def after(self, tokens: float) -> ExpectedRequest:
        """Return the request as it is when this many more tokens of it are made."""
        return ExpectedRequest(
            self.held_tokens + tokens, self.remaining_tokens - tokens, self.expected_tokens - tokens
        )


def estimate_wait(state: EndpointState, request: LlmRequest) -> WaitEstimate:
    """Simulate the starts before this request, at the engine's measured speed."""
    queue = requests_ahead(state, request)
    ahead = len(queue)
    starts_now = not ahead and fits(state.running.values(), request, state.batch_tokens)
    if state.endpoint is None or starts_now:
        return WaitEstimate(ahead, 0.0)
    simulated = [*queue, request][:MAX_STARTS]
    tokens = tokens_until_started(state, simulated) * (ahead + 1) / len(simulated)
    return WaitEstimate(ahead, tokens / state.speed.tokens_per_s(state.endpoint.tokens_per_s))


def tokens_until_started(state: EndpointState, queue: list[LlmRequest]) -> float:
    """Return the output tokens that the engine makes until the last of the queue starts."""
    share = state.speed.output_share
    batch = [ExpectedRequest.of(request, share) for request in state.running.values()]
    tokens = 0.0
    for request in queue:
        candidate = ExpectedRequest.of(request, share)
        while batch and not fits(batch, candidate, state.batch_tokens):
            step = min(running.expected_tokens for running in batch)
            tokens += step * len(batch)
            batch = [running.after(step) for running in batch if running.expected_tokens > step]
        batch.append(candidate)
    return tokens


def requests_ahead(state: EndpointState, last: LlmRequest) -> list[LlmRequest]:
    """Return the requests served before `last`, if every answer is as long as expected.

    `last` may be waiting already, or be about to join the end of its tenant's queue.
    """
    share = state.speed.output_share
    queues = {
        tenant: [state.waiting[request_id] for request_id in account.queue]
        for tenant, account in state.accounts.items()
        if account.queue
    }
    counters = {tenant: state.accounts[tenant].counter for tenant in queues}
    if last.request_id not in state.waiting:
        counters[last.tenant] = joining_counter(state, last.tenant)
        queues.setdefault(last.tenant, []).append(last)
    heap = [(counters[tenant], queue[0].queued_at, tenant, 0) for tenant, queue in queues.items()]
    heapq.heapify(heap)
    ahead: list[LlmRequest] = []
    while heap:
        counter, _, tenant, position = heapq.heappop(heap)
        request = queues[tenant][position]
        if request.request_id == last.request_id:
            return ahead
        ahead.append(request)
        if position + 1 < len(queues[tenant]):
            counter += expected_cost(request, share) / state.accounts[tenant].weight
            following = queues[tenant][position + 1]
            heapq.heappush(heap, (counter, following.queued_at, tenant, position + 1))
    return ahead


def expected_cost(request: LlmRequest, output_share: float) -> float:
    output_tokens = output_share * request.max_output_tokens
    return INPUT_PRICE * request.prompt_tokens + OUTPUT_PRICE * output_tokens
