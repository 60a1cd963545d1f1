"""Accepts requests into the queue, or rejects them; of commands and of the proxy alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.throttle.core.estimate import estimate_wait
from services.throttle.core.evolve import scoped_id
from services.throttle.core.state import EndpointState, LlmRequest
from shared.contracts.llm import LlmRequestQueued, LlmRequestRejected, ServeLlmRequest
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

COMMAND_TOPIC = "llm.requests"
"""A request from this topic is a command and gets an answer; a local input has none."""


class Rejection(NamedTuple):
    """Why a request is rejected; `retry_after_s` is None where a retry cannot help."""

    reason: str
    detail: str
    retry_after_s: float | None = None


def enqueue(
    state: EndpointState, item: Input, command: ServeLlmRequest, queue_limit: int, now: int
) -> Iterator[Decision]:
    """Queue or refuse the request; an id that was accepted before changes nothing."""
    if item.source == COMMAND_TOPIC and not state.answered.is_due(item, "throttle"):
        return
    refusal = check_ownership(state, item, command)
    if refusal is not None:
        yield from refuse(item, command, refusal)
    elif scoped_id(command.tenant, command.request_id) in state.accepted_ids:
        yield from accept(item, command, duplicate=True)
    elif (rejection := check_request(state, command, queue_limit)) is not None:
        yield from refuse(item, command, rejection)
        yield item.decision(reject_command(command, rejection))
    else:
        yield from accept(item, command, duplicate=False)
        yield item.decision(queue_request(state, command, now))


def check_ownership(
    state: EndpointState, item: Input, command: ServeLlmRequest
) -> Rejection | None:
    """Return why the request is not the tenant's own: no event may have another tenant's id."""
    if item.tenant and item.tenant != command.tenant:
        return Rejection("tenant_mismatch", f"tenant: {command.tenant!r}: is not the sender")
    request = state.find_request(command.request_id)
    if request is not None and request.tenant != command.tenant:
        return Rejection("request_id_taken", f"request_id: {command.request_id!r}: is in use")
    return None


def check_request(
    state: EndpointState, command: ServeLlmRequest, queue_limit: int
) -> Rejection | None:
    if state.endpoint is None or command.endpoint != state.endpoint_name:
        return Rejection("unknown_endpoint", f"endpoint: {command.endpoint!r}: not on this lane")
    account = state.accounts.get(command.tenant)
    if account is None or not account.active:
        return Rejection("unknown_tenant", f"tenant: {command.tenant!r}: unknown or retired")
    tokens = command.prompt_tokens + command.max_output_tokens
    if tokens > state.batch_tokens:
        return Rejection("too_large", describe_too_large(state, tokens))
    if len(account.queue) >= queue_limit:
        first = state.waiting[account.queue[0]]
        retry_after_s = round(estimate_wait(state, first).wait_s, 3)
        detail = f"tenant: {command.tenant!r}: queue limit ({queue_limit} requests) reached"
        return Rejection("queue_full", detail, retry_after_s)
    return None


def describe_too_large(state: EndpointState, tokens: int) -> str:
    return f"tokens: {tokens}: the batch holds {state.batch_tokens}"


def queue_request(state: EndpointState, command: ServeLlmRequest, now: int) -> LlmRequestQueued:
    request = LlmRequest(
        command.request_id, command.tenant, command.prompt_tokens, command.max_output_tokens, now
    )
    ahead, wait_s = estimate_wait(state, request)
    return LlmRequestQueued(
        request_id=command.request_id,
        tenant=command.tenant,
        endpoint=command.endpoint,
        application=command.application,
        prompt_tokens=command.prompt_tokens,
        max_output_tokens=command.max_output_tokens,
        ahead=ahead,
        wait_s=round(wait_s, 3),
    )


def reject_command(command: ServeLlmRequest, rejection: Rejection) -> LlmRequestRejected:
    return LlmRequestRejected(
        request_id=command.request_id,
        tenant=command.tenant,
        reason=rejection.reason,
        detail=rejection.detail,
        retry_after_s=rejection.retry_after_s,
    )


def accept(item: Input, command: ServeLlmRequest, *, duplicate: bool) -> Iterator[Decision]:
    if item.source == COMMAND_TOPIC:
        yield accept_command(item, command.request_id, tenant=command.tenant, duplicate=duplicate)


def refuse(item: Input, command: ServeLlmRequest, rejection: Rejection) -> Iterator[Decision]:
    if item.source == COMMAND_TOPIC:
        tenant = item.tenant or command.tenant
        reason, detail = rejection.reason, rejection.detail
        yield refuse_command(item, command.request_id, reason, detail, tenant=tenant)
