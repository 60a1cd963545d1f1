"""Settles running requests with what they used, and takes waiting ones out of the queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.throttle.core.configuration import cost_of
from services.throttle.core.rejections import reject_waiting
from services.throttle.core.state import EndpointState, OpenRequest
from shared.contracts.llm import LlmRequestFinished, RequestEnd, TokensCharged, TokensMade
from shared.ledger.decider import Decision, Input, UnitStart

LEFT_DETAILS = {
    "cancelled": "client: left before the request was started",
    "lost": "process: ended while the request waited; send it again",
    "process_stopped": "process: stops while the request waits; send it again",
}
"""Detail of the rejection of a request that left the queue, by reason."""


def charge_progress(
    state: EndpointState, item: Input, reports: Sequence[TokensMade]
) -> Iterator[Decision]:
    """Charge the output that running requests have made since the last report."""
    running = tuple(report for report in reports if report.request_id in state.running)
    if running:
        yield item.decision(TokensCharged(endpoint=state.endpoint_name, made=running))


def settle_ends(
    state: EndpointState, item: Input, ends: Sequence[RequestEnd], now: int
) -> Iterator[Decision]:
    """Settle each request that still runs; a second end of one changes nothing."""
    for end in ends:
        request = state.running.get(end.request_id)
        if request is not None:
            event = finish_event(state, request, end, now)
            yield UnitStart(event, item.id, request.traceparent)


def finish_event(
    state: EndpointState, request: OpenRequest, end: RequestEnd, now: int
) -> LlmRequestFinished:
    """Return the end of a request, with the charge.

    The engine's counts hold where it gave any. One that was lost is charged its whole
    reservation: its process knows no more what was made, and nothing is served uncharged.
    """
    served = request.served
    prompt_tokens = served.prompt_tokens if end.prompt_tokens is None else end.prompt_tokens
    output_tokens = max(end.output_tokens, served.made_tokens)
    if end.outcome == "lost":
        output_tokens = max(served.max_output_tokens, served.made_tokens)
    settings = state.last_endpoint
    cost = cost_of(settings, prompt_tokens, output_tokens) if settings is not None else 0.0
    return LlmRequestFinished(
        request_id=request.request_id,
        tenant=request.tenant,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        served_ms=max(0, now - served.started_at),
        outcome=end.outcome,
        cached_tokens=end.cached_tokens,
        upstream=end.upstream,
        reason=end.reason,
        cost=cost,
    )


def remove_waiting(
    state: EndpointState, item: Input, request_ids: Sequence[str], reason: str
) -> Iterator[Decision]:
    """Reject waiting requests that must not be served: their client or process is gone."""
    for request_id in request_ids:
        request = state.waiting.get(request_id)
        if request is not None:
            event = reject_waiting(state, request, reason, LEFT_DETAILS.get(reason, ""))
            yield UnitStart(event, item.id, request.traceparent)
