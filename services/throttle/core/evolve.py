"""What each fact does to a lane."""

from __future__ import annotations

from services.throttle.core.state import Account, Lane, Request
from services.throttle.core.vtc import joining_counter, output_charge
from shared.contracts.access import EndpointConfigured
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
)
from shared.ledger.decider import Fact


def evolve(lane: Lane, fact: Fact) -> None:
    match fact.event:
        case LlmRequestQueued() as event:
            queued(lane, event, fact)
        case LlmRequestStarted() as event:
            started(lane, event, fact.at)
        case TokensCharged() as event:
            charged(lane, event, fact.at)
        case LlmRequestFinished() as event:
            finished(lane, event)
        case LlmRequestRejected(request_id=request_id):
            leave_line(lane, request_id)
        case CommandAccepted() | CommandRefused() as answer:
            lane.answered.apply(answer)
        case TenantNoted() as tenant:
            account = lane.accounts.setdefault(tenant.tenant, Account())
            account.weight, account.active = tenant.weight, tenant.active
        case EndpointConfigured() as endpoint:
            lane.endpoint = endpoint


def queued(lane: Lane, event: LlmRequestQueued, fact: Fact) -> None:
    account = lane.accounts.setdefault(event.tenant, Account())
    account.counter = joining_counter(lane, event.tenant)
    account.line.append(event.request_id)
    lane.known.add(known_as(event.tenant, event.request_id))
    lane.waiting[event.request_id] = Request(
        event.request_id,
        event.tenant,
        event.prompt_tokens,
        event.max_output_tokens,
        fact.at,
        fact.traceparent,
    )


def started(lane: Lane, event: LlmRequestStarted, at: int) -> None:
    """The counter is taken from the fact: it was charged when the fact was written."""
    if not lane.running:
        lane.speed.began(at)
    request = leave_line(lane, event.request_id)
    if request is not None:
        request.started_at = at
        lane.accounts[request.tenant].counter = event.counter
        lane.running[request.request_id] = request


def charged(lane: Lane, event: TokensCharged, at: int) -> None:
    tokens = 0
    for each in event.made:
        request = lane.running.get(each.request_id)
        if request is None:
            continue
        request.made += each.tokens
        tokens += each.tokens
        account = lane.accounts[request.tenant]
        account.counter += output_charge(lane, request.tenant, each.tokens)
    lane.speed.made(tokens, at)


def finished(lane: Lane, event: LlmRequestFinished) -> None:
    request = lane.running.pop(event.request_id, None)
    if request is not None:
        lane.speed.finished(request.made / request.max_output_tokens)


def leave_line(lane: Lane, request_id: str) -> Request | None:
    request = lane.waiting.pop(request_id, None)
    if request is None:
        return None
    line = lane.accounts[request.tenant].line
    line.remove(request_id)
    if not line:
        lane.last_left = request.tenant
    return request


def known_as(tenant: str, request_id: str) -> str:
    """Two tenants may use the same id one after the other."""
    return f"{tenant}/{request_id}"
