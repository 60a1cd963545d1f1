"""The throttle's decider: it queues, starts, charges and rejects LLM requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.throttle.core.admit import admit
from services.throttle.core.evolve import evolve
from services.throttle.core.state import Lane, Request
from services.throttle.core.vtc import fits, next_up, prompt_charge
from shared.contracts.access import EndpointConfigured, TenantRegistered, TenantRetired
from shared.contracts.bookkeeping import TenantNoted
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

LINE = 200


class Throttle:
    """One endpoint; see `Decider`. `line` is how many requests of one tenant may wait."""

    ledger = "throttle"
    hears = CONSUMED_EVENTS["throttle"]

    def __init__(self, line: int = LINE) -> None:
        self.line = line

    def initial(self, partition: int) -> Lane:
        return Lane(partition)

    def decide(self, state: Lane, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            match item.message:
                case ServeLlmRequest() as wish:
                    yield from admit(state, item, wish, self.line, now)
                case EngineAdvanced(made=made):
                    yield from advance(state, item, made, now)
                case Undecodable() as bad:
                    yield item.leads_to(bad.rejected())
                case _ if item.source == "access":
                    yield from restate(state, item)
            yield from start_all(state, item, now)

    def evolve(self, state: Lane, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: Lane) -> int | None:
        return None


def start_all(lane: Lane, item: Input, now: int) -> Iterator[Decision]:
    """While the first in line fits; with an empty engine nobody waits."""
    while (request := next_up(lane)) is not None:
        if fits(lane.running.values(), request, lane.room_tokens):
            yield Decision(started(lane, request, now), item.id, request.traceparent)
        elif not lane.running:
            yield Decision(outgrown(lane, request), item.id, request.traceparent)
        else:
            return


def started(lane: Lane, request: Request, now: int) -> LlmRequestStarted:
    return LlmRequestStarted(
        request_id=request.request_id,
        tenant=request.tenant,
        waited_ms=max(0, now - request.queued_at),
        counter=lane.accounts[request.tenant].counter + prompt_charge(lane, request),
    )


def outgrown(lane: Lane, request: Request) -> LlmRequestRejected:
    """The endpoint was made smaller while the request waited."""
    return LlmRequestRejected(
        request_id=request.request_id,
        tenant=request.tenant,
        reason="too_large",
        detail=f"{request.reserved} tokens, the batch holds {lane.room_tokens}",
    )


def advance(lane: Lane, item: Input, made: Sequence[TokensMade], now: int) -> Iterator[Decision]:
    charged = tuple(countable(lane, made))
    if not charged:
        return
    yield item.leads_to(TokensCharged(endpoint=lane.name, made=charged))
    for each in charged:
        if each.done:
            request = lane.running[each.request_id]
            yield Decision(finished(request, now), item.id, request.traceparent)


def countable(lane: Lane, made: Sequence[TokensMade]) -> Iterator[TokensMade]:
    """Of running requests only, once each, and never more than was asked for."""
    for each in {each.request_id: each for each in made}.values():
        request = lane.running.get(each.request_id)
        if request is None:
            continue
        tokens = min(each.tokens, request.remaining)
        done = each.done or tokens == request.remaining
        if tokens or done:
            yield TokensMade(request_id=each.request_id, tokens=tokens, done=done)


def finished(request: Request, now: int) -> LlmRequestFinished:
    return LlmRequestFinished(
        request_id=request.request_id,
        tenant=request.tenant,
        prompt_tokens=request.prompt_tokens,
        output_tokens=request.made,
        served_ms=max(0, now - request.started_at),
    )


def restate(lane: Lane, item: Input) -> Iterator[Decision]:
    match item.message:
        case EndpointConfigured(partition=partition) as endpoint:
            if partition == lane.partition and endpoint != lane.endpoint:
                yield item.leads_to(endpoint)
        case TenantRegistered(tenant=tenant, weight=weight):
            account = lane.accounts.get(tenant)
            if account is None or not account.active or account.weight != weight:
                yield item.leads_to(TenantNoted(tenant=tenant, weight=weight))
        case TenantRetired(tenant=tenant):
            account = lane.accounts.get(tenant)
            if account is not None and account.active:
                noted = TenantNoted(tenant=tenant, active=False, weight=account.weight)
                yield item.leads_to(noted)
