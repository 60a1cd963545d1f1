"""Folds the events of the throttle ledger into the state of an endpoint."""

from __future__ import annotations

from services.throttle.core.configuration import reconfigure
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.state import EndpointState, OpenRequest
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted
from shared.contracts.llm import (
    CountersRebased,
    EndpointCapacityNoted,
    EndpointClockStepped,
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
    served = ServedRequest(
        event.request_id,
        event.tenant,
        event.prompt_tokens,
        event.max_output_tokens,
        fact.at,
        application=event.application,
        user=event.user,
        model=event.model or event.endpoint,
        priority=event.priority,
        first_token_by=first_token_by(state, event),
        prefix=event.prefix,
        interaction=event.interaction,
        is_issued=event.is_issued,
        stage=event.stage,
        system_tokens=event.system_tokens,
    )
    state.discipline.enqueue(served)
    state.waiting[event.request_id] = OpenRequest(served, fact.traceparent, place=event.place)
    state.waiting_of[event.tenant] = state.waiting_of.get(event.tenant, 0) + 1
    state.interactions.add_call(event.tenant, event.interaction, event.stage, fact.at)
    state.accepted_ids.add(scoped_id(event.tenant, event.request_id))


def first_token_by(state: EndpointState, event: LlmRequestQueued) -> int | None:
    """Return when the first token is due, by the clock of the state."""
    return None if event.first_token_by is None else event.first_token_by - state.stepped_ms


def start_request(state: EndpointState, event: LlmRequestStarted, fact: Fact) -> None:
    request = leave_queue(state, event.request_id)
    if request is None:
        return
    if not state.running:
        state.speed.begin(fact.at)
    state.progress += 1
    state.running[event.request_id] = request
    state.discipline.start(request.served, fact.at)


def charge_tokens(state: EndpointState, event: TokensCharged, fact: Fact) -> None:
    state.progress += 1
    for progress in event.made:
        request = state.running.get(progress.request_id)
        if request is not None:
            state.discipline.charge(request.served, progress.tokens, fact.at)
    state.speed.add_tokens(sum(progress.tokens for progress in event.made), fact.at)


def finish_request(state: EndpointState, event: LlmRequestFinished, fact: Fact) -> None:
    request = state.running.pop(event.request_id, None)
    if request is None:
        return
    state.progress += 1
    served = request.served
    made_tokens = max(event.output_tokens - served.made_tokens, 0)
    state.discipline.charge(served, made_tokens, fact.at)
    state.discipline.settle_prompt(served, event.prompt_tokens, fact.at)
    state.discipline.finish(served)
    if event.outcome != "lost":
        state.speed.add_tokens(made_tokens, fact.at)
    if event.outcome == "completed":
        state.speed.add_answer(served, event.output_tokens)


def reject_request(state: EndpointState, event: LlmRequestRejected, fact: Fact) -> None:
    request = leave_queue(state, event.request_id)
    if request is not None:
        state.discipline.withdraw(request.served)


def note_tenant(state: EndpointState, event: TenantNoted, fact: Fact) -> None:
    state.tenants[event.tenant] = event
    state.discipline.set_weight(event.tenant, event.weight)


def configure(state: EndpointState, event: EndpointConfigured, fact: Fact) -> None:
    reconfigure(state, event)
    state.endpoint = state.last_endpoint = event
    # Engines that were named or released now get their time to answer.
    state.away_since = fact.at


def delete_endpoint(state: EndpointState, event: EndpointDeleted, fact: Fact) -> None:
    state.endpoint = None


def note_capacity(state: EndpointState, event: EndpointCapacityNoted, fact: Fact) -> None:
    state.capacity, state.overloaded = event.requests, event.overloaded
    if event.away and not state.away:
        state.away_since = fact.at
    state.away = event.away
    state.retraining_share = event.retraining_share


def step_clock(state: EndpointState, event: EndpointClockStepped, fact: Fact) -> None:
    state.stepped_ms += event.by_ms


def rebase(state: EndpointState, event: CountersRebased, fact: Fact) -> None:
    state.discipline.rebase()


def leave_queue(state: EndpointState, request_id: str) -> OpenRequest | None:
    request = state.waiting.pop(request_id, None)
    if request is not None:
        state.waiting_of[request.tenant] -= 1
        if not state.waiting_of[request.tenant]:
            del state.waiting_of[request.tenant]
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
    EndpointCapacityNoted: note_capacity,
    CountersRebased: rebase,
    EndpointClockStepped: step_clock,
    CommandAccepted: fold_answer,
    CommandRefused: fold_answer,
    TenantNoted: note_tenant,
    EndpointConfigured: configure,
    EndpointDeleted: delete_endpoint,
    **INPUT_FOLDS,
}
"""Every event type of the throttle ledger, and its fold."""

_fold = folding("throttle", FOLDS)


def evolve(state: EndpointState, fact: Fact) -> None:
    """Fold one event of the ledger, at the time of the endpoint's own clock."""
    _fold(state, fact._replace(at=fact.at - state.stepped_ms) if state.stepped_ms else fact)
