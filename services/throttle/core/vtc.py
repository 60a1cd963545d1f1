"""Virtual Token Counter (Sheng et al., OSDI'24): the tenant that was served least goes next.

No preemption, work-conserving, and head-of-line: the chosen tenant's first request is never
passed over for one that fits better, or the bound on the difference of services would break.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from services.throttle.core.state import INPUT_PRICE, OUTPUT_PRICE, EndpointState, LlmRequest


class InBatch(Protocol):
    """The tokens that a request of a batch holds, and may still add."""

    @property
    def held_tokens(self) -> float: ...

    @property
    def remaining_tokens(self) -> float: ...


def next_request(state: EndpointState) -> LlmRequest | None:
    """Return the first request of the waiting tenant with the smallest counter, or None.

    Ties are broken by arrival, then by the tenant's name.
    """
    first = min(
        (
            (account.counter, state.waiting[account.queue[0]].queued_at, tenant)
            for tenant, account in state.accounts.items()
            if account.queue
        ),
        default=None,
    )
    return state.waiting[state.accounts[first[2]].queue[0]] if first else None


def fits(running: Iterable[InBatch], candidate: InBatch, batch_tokens: int) -> bool:
    """Return whether the batch with one more stays in bounds, however long the answers get.

    All decode in step, so the batch is largest just before one of them ends: with those sorted by
    remaining tokens, longest first, the peak before the i-th ends is what the first i hold then.
    """
    batch = sorted((*running, candidate), key=lambda request: -request.remaining_tokens)
    held_tokens = 0.0
    for count, request in enumerate(batch, start=1):
        held_tokens += request.held_tokens
        if held_tokens + count * request.remaining_tokens > batch_tokens:
            return False
    return True


def joining_counter(state: EndpointState, tenant: str) -> float:
    """Return the counter with which a tenant's next request joins: lifted if its queue is empty.

    There is no credit for idle time: the counter is at least the smallest of the waiting tenants,
    or, when no tenant waits, that of the tenant whose queue became empty last (the branch of the
    paper's algorithm 2 that its published code leaves out).
    """
    own = state.accounts[tenant]
    if own.queue:
        return own.counter
    counters = [account.counter for account in state.accounts.values() if account.queue]
    if counters:
        return max(own.counter, min(counters))
    last = state.accounts.get(state.last_emptied)
    return max(own.counter, last.counter) if last else own.counter


def prompt_charge(state: EndpointState, request: LlmRequest) -> float:
    return INPUT_PRICE * request.prompt_tokens / state.accounts[request.tenant].weight


def output_charge(state: EndpointState, tenant: str, tokens: float) -> float:
    return OUTPUT_PRICE * tokens / state.accounts[tenant].weight
