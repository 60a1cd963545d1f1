"""The requests of a throttle ledger compared with what the engine saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.parts.proxy.recorder import SeenRequest
from shared.contracts.base import Event
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
)


@dataclass(slots=True)
class ChargedRequest:
    """One request as the ledger has it."""

    queued: LlmRequestQueued
    is_started: bool = False
    is_rejected: bool = False
    finished: LlmRequestFinished | None = None

    @property
    def is_open(self) -> bool:
        return self.finished is None and not self.is_rejected

    @property
    def charge(self) -> int:
        """Tokens that were charged, or are reserved."""
        if self.finished is not None:
            return self.finished.prompt_tokens + self.finished.output_tokens
        if self.is_rejected:
            return 0
        return self.queued.prompt_tokens + self.queued.max_output_tokens


def accounts_of(events: Iterable[Event]) -> tuple[dict[str, ChargedRequest], int]:
    """Return the accounts by the field `user` of the requests.

    The number is the largest sum of charges and open reservations at any time.
    """
    by_id: dict[str, ChargedRequest] = {}
    total = most = 0
    for event in events:
        if isinstance(event, LlmRequestQueued):
            by_id[event.request_id] = account = ChargedRequest(event)
            total += account.charge
        elif isinstance(event, LlmRequestStarted | LlmRequestFinished | LlmRequestRejected):
            known = by_id.get(event.request_id)
            if known is not None:
                total += _apply(known, event)
        most = max(most, total)
    return {account.queued.user: account for account in by_id.values()}, most


def _apply(
    account: ChargedRequest, event: LlmRequestStarted | LlmRequestFinished | LlmRequestRejected
) -> int:
    """Apply an event; returns by how much the charge has changed."""
    before = account.charge
    match event:
        case LlmRequestStarted():
            account.is_started = True
        case LlmRequestFinished():
            account.finished = event
        case LlmRequestRejected():
            account.is_rejected = True
    return account.charge - before


def compare(
    accounts: Mapping[str, ChargedRequest], seen: Mapping[str, SeenRequest]
) -> dict[str, int]:
    """Return counts of requests; those from `unreserved` on must be 0."""
    pairs = [(accounts[user], request) for user, request in seen.items() if user in accounts]
    ended = [(a.finished, request) for a, request in pairs if a.finished is not None]
    completed = [(end, request) for end, request in ended if end.outcome == "completed"]
    lost = [
        (account, account.finished, request)
        for account, request in pairs
        if account.finished is not None and account.finished.outcome == "lost"
    ]
    return {
        "seen_by_engine": len(seen),
        "completed": len(completed),
        "lost_with_process": len(lost),
        "unreserved": len(seen) - sum(account.is_started for account, _ in pairs),
        "charged_unequal": sum(end.output_tokens != r.tokens for end, r in completed),
        "lost_above_reservation": sum(
            end.output_tokens > account.queued.max_output_tokens for account, end, _ in lost
        ),
        "lost_below_made": sum(end.output_tokens < r.tokens for _, end, r in lost),
        "left_open": sum(account.is_open for account in accounts.values()),
    }
