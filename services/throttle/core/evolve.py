"""Folds the events of the throttle ledger into the state of an endpoint."""

from __future__ import annotations

from services.throttle.core.state import EndpointState, LlmRequest, TenantAccount
from services.throttle.core.vtc import joining_counter, output_charge
from shared.contracts.access import EndpointConfigured
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
)
from shared.ledger.answers import fold_answer
from shared.ledger.decider import Fact
from shared.ledger.folds import INPUT_FOLDS, EventFold, folding


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


def start_request(state: EndpointState, event: LlmRequestStarted, fact: Fact) -> None:
    """Move a request into the batch; the event carries the counter after the prompt's charge."""
    if not state.running:
        state.speed.start(fact.at)
    request = leave_queue(state, event.request_id)
    if request is not None:
        request.started_at = fact.at
        state.accounts[request.tenant].counter = event.counter
        state.running[request.request_id] = request


def charge_tokens(state: EndpointState, event: TokensCharged, fact: Fact) -> None:
    tokens = 0
    for progress in event.made:
        request = state.running.get(progress.request_id)
        if request is None:
            continue
        request.made_tokens += progress.tokens
        tokens += progress.tokens
        account = state.accounts[request.tenant]
        account.counter += output_charge(state, request.tenant, progress.tokens)
    state.speed.add_tokens(tokens, fact.at)


def finish_request(state: EndpointState, event: LlmRequestFinished, fact: Fact) -> None:
    request = state.running.pop(event.request_id, None)
    if request is not None:
        state.speed.add_answer(request.made_tokens / request.max_output_tokens)


def reject_request(state: EndpointState, event: LlmRequestRejected, fact: Fact) -> None:
    leave_queue(state, event.request_id)


def note_tenant(state: EndpointState, event: TenantNoted, fact: Fact) -> None:
    account = state.accounts.setdefault(event.tenant, TenantAccount())
    account.weight, account.active = event.weight, event.active


def configure(state: EndpointState, event: EndpointConfigured, fact: Fact) -> None:
    state.endpoint = event


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


FOLDS: dict[type[Event], EventFold[EndpointState]] = {
    LlmRequestQueued: queue_request,
    LlmRequestStarted: start_request,
    TokensCharged: charge_tokens,
    LlmRequestFinished: finish_request,
    LlmRequestRejected: reject_request,
    CommandAccepted: fold_answer,
    CommandRefused: fold_answer,
    TenantNoted: note_tenant,
    EndpointConfigured: configure,
    **INPUT_FOLDS,
}
"""Every event type of the throttle ledger, and its fold."""

evolve = folding("throttle", FOLDS)
