"""Accepts requests into the queue, or rejects them; of commands and of the proxy alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.throttle.core.absence import AWAY_RETRY_S, describe_away, is_away_too_long
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import Throttled
from services.throttle.core.estimate import estimate_wait
from services.throttle.core.evolve import scoped_id
from services.throttle.core.state import EndpointState
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import LlmRequestQueued, LlmRequestRejected, ServeLlmRequest
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

COMMAND_TOPIC = "llm.requests"
"""A request from this topic is a command and gets an answer; a local input has none."""


MOST_WAITING = 50_000
"""Requests of all tenants that wait at an endpoint; those that run are bounded by its engines."""

FULL_RETRY_S = 5.0


class Rejection(NamedTuple):
    """The rejection of a request; `retry_after_s` is None where a retry cannot help."""

    reason: str
    detail: str
    retry_after_s: float | None = None


def enqueue(
    state: EndpointState, item: Input, command: ServeLlmRequest, now: int
) -> Iterator[Decision]:
    """Queue or refuse the request; an id that was accepted before changes nothing."""
    if item.source == COMMAND_TOPIC and not state.answered.is_due(item, "throttle"):
        return
    if (refusal := check_ownership(state, item, command)) is not None:
        yield from refuse(item, command, refusal)
    elif scoped_id(command.tenant, command.request_id) in state.accepted_ids:
        yield from accept(item, command, duplicate=True)
    else:
        served = served_request(state, command, now)
        rejection = (
            check_body(state, item, command)
            or check_request(state, command, served, now)
            or check_engines(state, item, now)
        )
        if rejection is not None:
            yield from refuse(item, command, rejection)
            yield item.decision(reject_command(command, rejection))
        else:
            yield from accept(item, command, duplicate=False)
            place = item.place if item.source == COMMAND_TOPIC else ""
            yield item.decision(queue_event(state, command, served, place))


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


def served_request(state: EndpointState, command: ServeLlmRequest, now: int) -> ServedRequest:
    """Return the request as a discipline sees it."""
    due_ms = command.first_token_ms
    return ServedRequest(
        command.request_id,
        command.tenant,
        command.prompt_tokens,
        output_limit(state, command),
        now,
        application=command.application,
        user=command.user,
        model=command.model or command.endpoint,
        priority=command.priority,
        first_token_by=None if due_ms is None else now + due_ms,
        prefix=command.prefix,
        interaction=command.interaction,
        is_issued=command.is_issued,
        stage=state.interactions.stage(command.tenant, command.interaction, now),
        system_tokens=command.system_tokens,
    )


def output_limit(state: EndpointState, command: ServeLlmRequest) -> int:
    """Return the limit of output tokens: the endpoint's where the request names none."""
    names_none = command.body is not None and not command.max_output_tokens
    if names_none and command.route != "embeddings" and state.endpoint is not None:
        return state.endpoint.output_limit
    return command.max_output_tokens


def check_body(state: EndpointState, item: Input, command: ServeLlmRequest) -> Rejection | None:
    """Return why a request from the topic has no body that an engine of this lane may get."""
    if item.source != COMMAND_TOPIC:
        return None
    if command.body is None:
        return Rejection("no_body", "body: missing; the OpenAI request to serve is required")
    endpoint = state.endpoint
    if endpoint is not None and (command.model or endpoint.endpoint) not in endpoint.models:
        detail = f"model: {command.model!r}: not a model of endpoint {endpoint.endpoint}"
        return Rejection("model_not_found", detail)
    return None


def check_request(
    state: EndpointState, command: ServeLlmRequest, served: ServedRequest, now: int
) -> Rejection | None:
    endpoint = state.endpoint
    if endpoint is None or command.endpoint != endpoint.endpoint:
        return Rejection("unknown_endpoint", f"endpoint: {command.endpoint!r}: not on this lane")
    refusal = check_tenant(state, endpoint, command.tenant)
    if refusal is not None:
        return refusal
    if endpoint.drained:
        detail = f"endpoint: {command.endpoint!r}: is drained and takes no requests"
        return Rejection("endpoint_drained", detail)
    return check_limits(state, endpoint, served, now)


def check_tenant(
    state: EndpointState, endpoint: EndpointConfigured, tenant: str
) -> Rejection | None:
    """Return why the tenant may not use the endpoint."""
    noted = state.tenants.get(tenant)
    if noted is None or not noted.active:
        return Rejection("unknown_tenant", f"tenant: {tenant!r}: unknown or retired")
    if endpoint.tenants and tenant not in endpoint.tenants:
        detail = f"tenant: {tenant!r}: may not use endpoint {endpoint.endpoint}"
        return Rejection("not_allowed", detail)
    return None


def check_engines(state: EndpointState, item: Input, now: int) -> Rejection | None:
    """Return why no engine will serve a client that waits; one by event can wait longer."""
    return None if item.source == COMMAND_TOPIC else check_away(state, now)


def check_away(state: EndpointState, now: int) -> Rejection | None:
    if not is_away_too_long(state, now):
        return None
    return Rejection("upstream_unavailable", describe_away(state, now), AWAY_RETRY_S)


def refusal_now(state: EndpointState, command: ServeLlmRequest, now: int) -> Rejection | None:
    """Return why the request of a client would be refused; changes nothing."""
    served = served_request(state, command, now)
    return check_request(state, command, served, now) or check_away(state, now)


def check_limits(
    state: EndpointState, endpoint: EndpointConfigured, served: ServedRequest, now: int
) -> Rejection | None:
    tokens = served.prompt_tokens + served.max_output_tokens
    if endpoint.batch_tokens is not None and tokens > endpoint.batch_tokens:
        return Rejection("too_large", describe_too_large(tokens, endpoint.batch_tokens))
    if state.waiting_of.get(served.tenant, 0) >= endpoint.queue_limit:
        wait_s = estimate_wait(state, served).wait_s
        retry_s = FULL_RETRY_S if wait_s is None else round(wait_s / endpoint.queue_limit, 3)
        detail = f"tenant: {served.tenant!r}: queue limit ({endpoint.queue_limit} requests) reached"
        return Rejection("queue_full", detail, retry_s)
    if len(state.waiting) >= MOST_WAITING:
        detail = f"endpoint: {endpoint.endpoint!r}: limit of waiting requests ({MOST_WAITING})"
        return Rejection("queue_full", f"{detail} reached", FULL_RETRY_S)
    throttled = state.discipline.refusal(served, state.load, now)
    return None if throttled is None else describe_throttled(served, throttled)


def describe_too_large(tokens: int, batch_tokens: int) -> str:
    return f"tokens: {tokens}: the endpoint runs {batch_tokens} at once (batch_tokens)"


def describe_throttled(served: ServedRequest, throttled: Throttled) -> Rejection:
    limit = f"tenant: {served.tenant!r}: limit {throttled.reason} of the endpoint reached"
    wait_ms = throttled.retry_after_ms
    retry_after_s = None if wait_ms is None else wait_ms / 1000
    return Rejection(throttled.reason, throttled.detail or limit, retry_after_s)


def queue_event(
    state: EndpointState, command: ServeLlmRequest, served: ServedRequest, place: str
) -> LlmRequestQueued:
    estimate, due = estimate_wait(state, served), served.first_token_by
    return LlmRequestQueued(
        request_id=command.request_id,
        tenant=command.tenant,
        endpoint=command.endpoint,
        application=command.application,
        user=command.user,
        interaction=command.interaction,
        is_issued=command.is_issued,
        stage=served.stage,
        prompt_tokens=command.prompt_tokens,
        max_output_tokens=served.max_output_tokens,
        system_tokens=command.system_tokens,
        model=command.model or "",
        priority=command.priority,
        first_token_by=None if due is None else due + state.stepped_ms,
        prefix=command.prefix,
        ahead=estimate.ahead,
        wait_s=None if estimate.wait_s is None else round(estimate.wait_s, 3),
        place=place,
    )


def reject_command(command: ServeLlmRequest, rejection: Rejection) -> LlmRequestRejected:
    return LlmRequestRejected(
        request_id=command.request_id,
        tenant=command.tenant,
        reason=rejection.reason,
        detail=rejection.detail,
        retry_after_s=rejection.retry_after_s,
        endpoint=command.endpoint,
        application=command.application,
        user=command.user,
        model=command.model or "",
    )


def accept(item: Input, command: ServeLlmRequest, *, duplicate: bool) -> Iterator[Decision]:
    if item.source == COMMAND_TOPIC:
        yield accept_command(item, command.request_id, tenant=command.tenant, duplicate=duplicate)


def refuse(item: Input, command: ServeLlmRequest, rejection: Rejection) -> Iterator[Decision]:
    if item.source == COMMAND_TOPIC:
        tenant = item.tenant or command.tenant
        reason, detail = rejection.reason, rejection.detail
        yield refuse_command(item, command.request_id, reason, detail, tenant=tenant)
