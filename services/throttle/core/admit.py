"""May a request join the line? Asked by a command, or by the proxy's own HTTP requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.throttle.core.estimate import wait_of
from services.throttle.core.evolve import known_as
from services.throttle.core.state import Lane, Request
from shared.contracts.llm import LlmRequestQueued, LlmRequestRejected, ServeLlmRequest
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

TOPIC = "llm.requests"
"""What comes from there is a command and gets an answer; a local input gets its facts only."""


class Refusal(NamedTuple):
    """Why not; `retry_after_s` is None for what will never do."""

    reason: str
    detail: str
    retry_after_s: float | None = None


def admit(
    lane: Lane, item: Input, wish: ServeLlmRequest, line: int, now: int
) -> Iterator[Decision]:
    """An id that was accepted before leads to nothing more, so a client may repeat it."""
    if item.source == TOPIC and not lane.answered.is_due(item, "throttle"):
        return
    foreign = not_theirs(lane, item, wish)
    if foreign is not None:
        yield from refuse(item, wish, foreign)
    elif known_as(wish.tenant, wish.request_id) in lane.known:
        yield from accept(item, wish, duplicate=True)
    elif (refusal := why_not(lane, wish, line)) is not None:
        yield from refuse(item, wish, refusal)
        yield item.leads_to(rejected(wish, refusal))
    else:
        yield from accept(item, wish, duplicate=False)
        yield item.leads_to(queued(lane, wish, now))


def not_theirs(lane: Lane, item: Input, wish: ServeLlmRequest) -> Refusal | None:
    """Nothing may be said under an id that belongs to somebody else."""
    if item.tenant and item.tenant != wish.tenant:
        return Refusal("tenant_mismatch", f"tenant: {wish.tenant!r} is not the sender")
    live = lane.request(wish.request_id)
    if live is not None and live.tenant != wish.tenant:
        return Refusal("request_id_taken", "request_id: in use")
    return None


def why_not(lane: Lane, wish: ServeLlmRequest, line: int) -> Refusal | None:
    if lane.endpoint is None or wish.endpoint != lane.name:
        return Refusal("unknown_endpoint", f"endpoint: {wish.endpoint!r}")
    account = lane.accounts.get(wish.tenant)
    if account is None or not account.active:
        return Refusal("unknown_tenant", f"tenant: {wish.tenant!r}")
    tokens = wish.prompt_tokens + wish.max_output_tokens
    if tokens > lane.room_tokens:
        return Refusal("too_large", f"{tokens} tokens, the batch holds {lane.room_tokens}")
    if len(account.line) >= line:
        first = lane.waiting[account.line[0]]
        retry_after_s = round(wait_of(lane, first).wait_s, 3)
        return Refusal("queue_full", f"{line} requests of the tenant wait", retry_after_s)
    return None


def queued(lane: Lane, wish: ServeLlmRequest, now: int) -> LlmRequestQueued:
    request = Request(wish.request_id, wish.tenant, wish.prompt_tokens, wish.max_output_tokens, now)
    ahead, wait_s = wait_of(lane, request)
    return LlmRequestQueued(
        request_id=wish.request_id,
        tenant=wish.tenant,
        endpoint=wish.endpoint,
        application=wish.application,
        prompt_tokens=wish.prompt_tokens,
        max_output_tokens=wish.max_output_tokens,
        ahead=ahead,
        wait_s=round(wait_s, 3),
    )


def rejected(wish: ServeLlmRequest, refusal: Refusal) -> LlmRequestRejected:
    return LlmRequestRejected(
        request_id=wish.request_id,
        tenant=wish.tenant,
        reason=refusal.reason,
        detail=refusal.detail,
        retry_after_s=refusal.retry_after_s,
    )


def accept(item: Input, wish: ServeLlmRequest, *, duplicate: bool) -> Iterator[Decision]:
    if item.source == TOPIC:
        yield accept_command(item, wish.request_id, tenant=wish.tenant, duplicate=duplicate)


def refuse(item: Input, wish: ServeLlmRequest, refusal: Refusal) -> Iterator[Decision]:
    if item.source == TOPIC:
        tenant = item.tenant or wish.tenant
        yield refuse_command(item, wish.request_id, refusal.reason, refusal.detail, tenant=tenant)
