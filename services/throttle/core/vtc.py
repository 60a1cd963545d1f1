"""Virtual Token Counter (Sheng et al., OSDI'24): the tenant that was served least goes next.

No preemption, work-conserving, and head-of-line: the chosen tenant's first request is never
passed over for one that fits better, or the bound on the difference of services would break.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from services.throttle.core.state import INPUT_PRICE, OUTPUT_PRICE, Lane, Request


class InBatch(Protocol):
    """What a batch has to know of one of its requests, in tokens."""

    @property
    def held(self) -> float: ...

    @property
    def remaining(self) -> float: ...


def next_up(lane: Lane) -> Request | None:
    """The first request of the waiting tenant with the smallest counter; ties by who came first,
    then by name."""
    first = min(
        (
            (account.counter, lane.waiting[account.line[0]].queued_at, tenant)
            for tenant, account in lane.accounts.items()
            if account.line
        ),
        default=None,
    )
    return lane.waiting[lane.accounts[first[2]].line[0]] if first else None


def fits(running: Iterable[InBatch], more: InBatch, room_tokens: int) -> bool:
    """Would the batch with one more stay within its room, however long the answers get?

    All decode in step, so the batch is largest just before one of them ends: with those sorted by
    what is left, longest first, the peak before the i-th ends is what the first i hold then.
    """
    batch = sorted((*running, more), key=lambda request: -request.remaining)
    held = 0.0
    for count, request in enumerate(batch, start=1):
        held += request.held
        if held + count * request.remaining > room_tokens:
            return False
    return True


def joining_counter(lane: Lane, tenant: str) -> float:
    """The counter with which a tenant's next request joins: lifted if its line was empty.

    No credit for idle time: at least the smallest counter of those who wait, or, when nobody
    does, that of the tenant whose line became empty last (the branch of the paper's algorithm 2
    that its published code leaves out).
    """
    own = lane.accounts[tenant]
    if own.line:
        return own.counter
    waiting = [account.counter for account in lane.accounts.values() if account.line]
    if waiting:
        return max(own.counter, min(waiting))
    last = lane.accounts.get(lane.last_left)
    return max(own.counter, last.counter) if last else own.counter


def prompt_charge(lane: Lane, request: Request) -> float:
    return INPUT_PRICE * request.prompt_tokens / lane.accounts[request.tenant].weight


def output_charge(lane: Lane, tenant: str, tokens: float) -> float:
    return OUTPUT_PRICE * tokens / lane.accounts[tenant].weight
