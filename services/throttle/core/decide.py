"""The throttle's decider: it queues, starts, charges and rejects LLM requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.throttle.core.enqueue import describe_too_large, enqueue
from services.throttle.core.evolve import evolve
from services.throttle.core.state import EndpointState, LlmRequest
from services.throttle.core.vtc import fits, next_request, prompt_charge
from shared.contracts.access import EndpointConfigured
from shared.contracts.llm import (
    EngineAdvanced,
    LlmRequestFinished,
    LlmRequestRejected,
    LlmRequestStarted,
    ServeLlmRequest,
    TokensCharged,
    TokensMade,
)
from shared.contracts.topics import CONSUMED_EVENTS
from shared.ledger.decider import Decision, Fact, Input, Undecodable
from shared.ledger.restate import restate_settings, restate_tenants

QUEUE_LIMIT = 200


class Throttle:
    """One endpoint; see `Decider`. `queue_limit` bounds the waiting requests of one tenant."""

    ledger = "throttle"
    consumed_events = CONSUMED_EVENTS["throttle"]

    def __init__(self, queue_limit: int = QUEUE_LIMIT) -> None:
        self.queue_limit = queue_limit

    def initial(self, partition: int) -> EndpointState:
        return EndpointState(partition)

    def decide(self, state: EndpointState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            match item.message:
                case ServeLlmRequest() as command:
                    yield from enqueue(state, item, command, self.queue_limit, now)
                case EngineAdvanced(made=reports):
                    yield from advance(state, item, reports, now)
                case Undecodable() as undecodable:
                    yield item.decision(undecodable.rejection())
                case _ if item.source == "access":
                    yield from restate_settings(
                        [item], EndpointConfigured, state.partition, state.endpoint
                    )
                    yield from restate_tenants([item], state.noted_tenant)
            yield from start_requests(state, item, now)

    def evolve(self, state: EndpointState, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: EndpointState) -> int | None:
        return None


def start_requests(state: EndpointState, item: Input, now: int) -> Iterator[Decision]:
    """Start requests while the next one fits; one that an empty engine cannot hold is rejected."""
    while (request := next_request(state)) is not None:
        if fits(state.running.values(), request, state.batch_tokens):
            yield Decision(start_request(state, request, now), item.id, request.traceparent)
        elif not state.running:
            yield Decision(reject_outgrown(state, request), item.id, request.traceparent)
        else:
            return


def start_request(state: EndpointState, request: LlmRequest, now: int) -> LlmRequestStarted:
    return LlmRequestStarted(
        request_id=request.request_id,
        tenant=request.tenant,
        waited_ms=max(0, now - request.queued_at),
        counter=state.accounts[request.tenant].counter + prompt_charge(state, request),
    )


def reject_outgrown(state: EndpointState, request: LlmRequest) -> LlmRequestRejected:
    """Reject a request that no longer fits: the endpoint was made smaller while it waited."""
    return LlmRequestRejected(
        request_id=request.request_id,
        tenant=request.tenant,
        reason="too_large",
        detail=describe_too_large(state, request.peak_tokens),
    )


def advance(
    state: EndpointState, item: Input, reports: Sequence[TokensMade], now: int
) -> Iterator[Decision]:
    charged = tuple(chargeable(state, reports))
    if not charged:
        return
    yield item.decision(TokensCharged(endpoint=state.endpoint_name, made=charged))
    for progress in charged:
        if progress.done:
            request = state.running[progress.request_id]
            yield Decision(finish_request(request, now), item.id, request.traceparent)


def chargeable(state: EndpointState, reports: Sequence[TokensMade]) -> Iterator[TokensMade]:
    """Yield the progress of running requests, once each, and never beyond what was requested."""
    for progress in {progress.request_id: progress for progress in reports}.values():
        request = state.running.get(progress.request_id)
        if request is None:
            continue
        tokens = min(progress.tokens, request.remaining_tokens)
        done = progress.done or tokens == request.remaining_tokens
        if tokens or done:
            yield TokensMade(request_id=progress.request_id, tokens=tokens, done=done)


def finish_request(request: LlmRequest, now: int) -> LlmRequestFinished:
    return LlmRequestFinished(
        request_id=request.request_id,
        tenant=request.tenant,
        prompt_tokens=request.prompt_tokens,
        output_tokens=request.made_tokens,
        served_ms=max(0, now - request.started_at),
    )
