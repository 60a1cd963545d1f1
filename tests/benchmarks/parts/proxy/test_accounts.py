"""Accounts of a ledger: what is open, charged and reserved, and how it differs from the engine."""

from __future__ import annotations

from benchmarks.parts.proxy.accounts import accounts_of, compare
from benchmarks.parts.proxy.recorder import SeenRequest
from services.throttle.relay.usage import TokenCount
from shared.contracts.base import Event
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    RequestOutcome,
)


def queued(number: int) -> LlmRequestQueued:
    return LlmRequestQueued(
        request_id=f"r{number}",
        tenant="acme",
        endpoint="m",
        user=f"u{number}",
        prompt_tokens=10,
        max_output_tokens=50,
    )


def started(number: int) -> LlmRequestStarted:
    return LlmRequestStarted(request_id=f"r{number}", tenant="acme")


def finished(number: int, tokens: int, outcome: RequestOutcome = "completed") -> LlmRequestFinished:
    return LlmRequestFinished(
        request_id=f"r{number}",
        tenant="acme",
        prompt_tokens=10,
        output_tokens=tokens,
        served_ms=1,
        outcome=outcome,
    )


def seen(chunks: int) -> SeenRequest:
    count = TokenCount("chat/completions")
    count.chunks = chunks
    return SeenRequest(count)


def test_the_most_that_was_reserved_and_charged_is_that_of_any_time() -> None:
    events: list[Event] = [queued(1), queued(2), started(1), finished(1, 5)]
    accounts, most = accounts_of(events)
    assert most == 120
    assert (accounts["u1"].charge, accounts["u1"].is_open) == (15, False)
    assert (accounts["u2"].charge, accounts["u2"].is_open) == (60, True)
    rejected = LlmRequestRejected(request_id="r2", tenant="acme", reason="lost", detail="")
    accounts, _ = accounts_of([*events, rejected])
    assert accounts["u2"].charge == 0


def test_differences_from_the_engine_are_counted() -> None:
    events = [queued(n) for n in (1, 2, 3, 4)]
    events += [started(1), started(2), started(3)]  # type: ignore[list-item]
    events += [finished(1, 7), finished(2, 7), finished(3, 60, "lost")]  # type: ignore[list-item]
    accounts, _ = accounts_of(events)
    counts = compare(accounts, {"u1": seen(7), "u2": seen(8), "u3": seen(9), "u4": seen(1)})
    assert counts == {
        "seen_by_engine": 4,
        "completed": 2,
        "lost_with_process": 1,
        "unreserved": 1,
        "charged_unequal": 1,
        "lost_above_reservation": 1,
        "lost_below_made": 0,
        "left_open": 1,
    }
