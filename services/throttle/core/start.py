"""Decisions that follow from the state: starts while engines have room, and ends of waits."""

from __future__ import annotations

from collections.abc import Iterator

from services.throttle.core.absence import AWAY_RETRY_S, away_until, describe_away, is_away_too_long
from services.throttle.core.batch import fits
from services.throttle.core.enqueue import check_tenant, describe_too_large
from services.throttle.core.rejections import reject_waiting
from services.throttle.core.state import EndpointState, OpenRequest
from shared.contracts.llm import CountersRebased, LlmRequestRejected, LlmRequestStarted
from shared.ledger.decider import Decision, Input, UnitStart, WakeStart

RETRY_S = 1.0
DELETED = "endpoint_deleted", "endpoint: was deleted"
REBASE_LEVEL = 1e12
"""Level of the counters at which they are lowered: floats count whole units up to 9e15."""


def advance(state: EndpointState, now: int) -> Iterator[Decision]:
    """End waits that must end, then start requests while the next one fits."""
    yield from end_waits(state, now)
    yield from start_requests(state, now)
    if state.discipline.level > REBASE_LEVEL:
        yield WakeStart(CountersRebased(endpoint=state.endpoint_name))


def start_requests(state: EndpointState, now: int, cause: str = "") -> Iterator[Decision]:
    """Start requests while the next one fits: behind the input `cause`, or behind all inputs."""
    unit = UnitStart if cause else WakeStart
    while (request := startable_request(state)) is not None:
        event = reject_at_start(state, request) or start_event(request, now)
        yield unit(event, cause, request.traceparent)


def due_at(state: EndpointState) -> int | None:
    """Return when `advance` has something to do: 0 for at once, or the time of a time-out."""
    if startable_request(state) is not None:
        return 0
    oldest = next(iter(state.waiting.values()), None)
    if oldest is None:
        return None
    if state.endpoint is None:
        return 0
    until = away_until(state)
    if until is not None and any(not request.place for request in state.waiting.values()):
        return min(until, timeout_at(state, oldest))
    return timeout_at(state, oldest)


def startable_request(state: EndpointState) -> OpenRequest | None:
    """Return the next request, if engines have room for it or none ever will."""
    if state.endpoint is None or len(state.running) >= state.capacity:
        return None
    served = state.discipline.next_request()
    if served is None:
        return None
    request = state.waiting[served.request_id]
    batch_tokens = state.endpoint.batch_tokens
    if batch_tokens is None or not state.running:
        return request
    running = [other.served for other in state.running.values()]
    return request if fits(running, served, batch_tokens) else None


def fits_alone(state: EndpointState, request: OpenRequest) -> bool:
    """Return whether the request fits an endpoint that runs no other."""
    batch_tokens = state.endpoint.batch_tokens if state.endpoint else None
    return batch_tokens is None or fits((), request.served, batch_tokens)


def start_event(request: OpenRequest, now: int) -> LlmRequestStarted:
    waited_ms = max(0, now - request.served.queued_at)
    return LlmRequestStarted(
        request_id=request.request_id, tenant=request.tenant, waited_ms=waited_ms
    )


def end_waits(state: EndpointState, now: int) -> Iterator[Decision]:
    """Reject the requests that have waited too long, and all of an endpoint that is deleted.

    Without engines for too long all end that a client waits for; else the oldest end first.
    """
    is_away = is_away_too_long(state, now)
    oldest = next(iter(state.waiting.values()), None)
    if oldest is None or not (is_away or end_of_wait(state, oldest, now)):
        # In nearly all rounds: thousands that wait are not copied then.
        return
    for request in list(state.waiting.values()):
        event = end_of_wait(state, request, now)
        if event is not None:
            yield WakeStart(event, "", request.traceparent)
        elif not is_away:
            return


def end_of_wait(state: EndpointState, request: OpenRequest, now: int) -> LlmRequestRejected | None:
    if state.endpoint is None:
        (reason, detail), retry_s = DELETED, None
    elif timeout_at(state, request) <= now:
        limit_s = state.endpoint.queue_timeout_s
        reason, retry_s = "queue_timeout", RETRY_S
        detail = f"wait: longer than {limit_s:g} s (queue_timeout_s)"
        if state.away:
            detail = f"{detail}; no engine can serve: {state.away}"
    elif not request.place and is_away_too_long(state, now):
        reason, retry_s = "upstream_unavailable", AWAY_RETRY_S
        detail = describe_away(state, now)
    else:
        return None
    return reject_waiting(state, request, reason, detail, retry_s)


def reject_deleted(state: EndpointState, item: Input) -> Iterator[Decision]:
    """Reject all requests that wait at an endpoint that this input has deleted."""
    for request in list(state.waiting.values()):
        event = reject_waiting(state, request, *DELETED)
        yield UnitStart(event, item.id, request.traceparent)


def timeout_at(state: EndpointState, request: OpenRequest) -> int:
    timeout_s = state.endpoint.queue_timeout_s if state.endpoint else 0.0
    return request.served.queued_at + round(1000 * timeout_s)


def reject_at_start(state: EndpointState, request: OpenRequest) -> LlmRequestRejected | None:
    """Return the rejection of a request that may be served no more; None if it may.

    While it waited the endpoint was made smaller, or its tenant was retired or lost the right.
    """
    if not fits_alone(state, request):
        return reject_outgrown(state, request)
    endpoint = state.endpoint
    refusal = check_tenant(state, endpoint, request.tenant) if endpoint is not None else None
    if refusal is None:
        return None
    return reject_waiting(state, request, refusal.reason, refusal.detail)


def reject_outgrown(state: EndpointState, request: OpenRequest) -> LlmRequestRejected:
    """Reject a request that no longer fits."""
    served = request.served
    tokens = served.prompt_tokens + served.max_output_tokens
    batch_tokens = (state.endpoint.batch_tokens if state.endpoint else None) or 0
    detail = describe_too_large(tokens, batch_tokens)
    return reject_waiting(state, request, "too_large", detail)
