"""Folds the events of the throttle ledger into the state of an endpoint."""

from __future__ import annotations

from services.throttle.core.state import EndpointState, LlmRequest, TenantAccount
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
from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.ledger.decider import Fact


def evolve(state: EndpointState, fact: Fact) -> None:
    """Fold one event of the throttle's own ledger; raises on a type that it does not write."""
    match fact.event:
        case LlmRequestQueued() as event:
            queue_request(state, event, fact)
        case LlmRequestStarted() as event:
            start_request(state, event, fact.at)
        case TokensCharged() as event:
            charge_tokens(state, event, fact.at)
        case LlmRequestFinished() as event:
            finish_request(state, event)
        case LlmRequestRejected(request_id=request_id):
            leave_queue(state, request_id)
        case CommandAccepted() | CommandRefused() as answer:
            state.answered.apply(answer)
        case TenantNoted() as tenant:
            account = state.accounts.setdefault(tenant.tenant, TenantAccount())
            account.weight, account.active = tenant.weight, tenant.active
        case EndpointConfigured() as endpoint:
            state.endpoint = endpoint
        case InputRejected() | InputQuarantined():
            pass
        case event:
            raise TypeError(f"event of an unknown type in the throttle ledger: {event.TYPE}")


def queue_request(state: EndpointState, event: LlmRequestQueued, fact: Fact) -> None:
    account = state.accounts.setdefault(event.tenant, TenantAccount())
    account.counter = joining_counter(state, event.tenant)
    account.queue.append(event.request_id)
    state.accepted_ids.add(scoped_id(event.tenant, event.request_id))
    state.waiting[event.request_id] = LlmRequest(
        event.request_id,
        event.tenant,
        event.prompt_tokens,
        event.max_output_tokens,
        fact.at,
        fact.traceparent,
    )


def start_request(state: EndpointState, event: LlmRequestStarted, at: int) -> None:
    """Move a request into the batch; the event carries the counter after the prompt's charge."""
    if not state.running:
        state.speed.start(at)
    request = leave_queue(state, event.request_id)
    if request is not None:
        request.started_at = at
        state.accounts[request.tenant].counter = event.counter
        state.running[request.request_id] = request


def charge_tokens(state: EndpointState, event: TokensCharged, at: int) -> None:
    tokens = 0
    for progress in event.made:
        request = state.running.get(progress.request_id)
        if request is None:
            continue
        request.made_tokens += progress.tokens
        tokens += progress.tokens
        account = state.accounts[request.tenant]
        account.counter += output_charge(state, request.tenant, progress.tokens)
    state.speed.add_tokens(tokens, at)


def finish_request(state: EndpointState, event: LlmRequestFinished) -> None:
    request = state.running.pop(event.request_id, None)
    if request is not None:
        state.speed.add_answer(request.made_tokens / request.max_output_tokens)


def leave_queue(state: EndpointState, request_id: str) -> LlmRequest | None:
    request = state.waiting.pop(request_id, None)
    if request is None:
        return None
    queue = state.accounts[request.tenant].queue
    queue.remove(request_id)
    if not queue:
        state.last_emptied = request.tenant
    return request


def scoped_id(tenant: str, request_id: str) -> str:
    """Return the id within its tenant: two tenants may use the same id one after the other."""
    return f"{tenant}/{request_id}"
