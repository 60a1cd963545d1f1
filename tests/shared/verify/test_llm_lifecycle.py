"""An LLM request runs once, after its reservation, and is settled once, within it."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.base import Event
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    TokensCharged,
    TokensMade,
)
from shared.ledger.recent_ids import CAPACITY
from shared.verify.llm_lifecycle import LlmLifecycleRule
from tests.shared.ledger_events import ledger_event

STARTED = LlmRequestStarted(request_id="r", tenant="red")
REJECTED = LlmRequestRejected(request_id="r", tenant="red", reason="cancelled")
PRICED = EndpointConfigured(
    endpoint="chat", partition=0, request_price=1, prompt_price=1e6, output_price=2e6
)


def queued(request_id: str = "r", tenant: str = "red") -> LlmRequestQueued:
    return LlmRequestQueued(
        request_id=request_id,
        tenant=tenant,
        endpoint="chat",
        prompt_tokens=10,
        max_output_tokens=50,
    )


def charged(tokens: int) -> TokensCharged:
    return TokensCharged(endpoint="chat", made=(TokensMade(request_id="r", tokens=tokens),))


def finished(prompt: int = 10, output: int = 5, **fields: Any) -> LlmRequestFinished:
    given = {"request_id": "r", "tenant": "red", "prompt_tokens": prompt, "output_tokens": output}
    return LlmRequestFinished.model_validate({**given, **fields})


def details(*events: Event) -> list[str]:
    rule = LlmLifecycleRule()
    for seq, event in enumerate(events, start=1):
        rule.observe(ledger_event("throttle", event, seq=seq))
    return [violation.detail for violation in rule.finish()]


SOUND: list[tuple[Event, ...]] = [
    (queued(), STARTED, charged(4), finished()),
    (queued(), STARTED),
    (queued(), REJECTED, queued(), STARTED),
    (REJECTED,),
    (queued(), STARTED, finished(prompt=12)),
    (queued(), STARTED, finished(outcome="lost", output=50)),
    (PRICED, queued(), STARTED, finished(cost=21.0)),
    (queued(), LlmRequestRejected(request_id="r", tenant="blue", reason="not_allowed"), STARTED),
]


@pytest.mark.parametrize("events", SOUND)
def test_a_request_may_wait_run_and_end_once(events: tuple[Event, ...]) -> None:
    assert details(*events) == []


BROKEN: list[tuple[tuple[Event, ...], str]] = [
    ((STARTED,), "r was started without a reservation"),
    ((queued(tenant="blue"), STARTED), "r was started without a reservation"),
    ((queued(), STARTED, STARTED), "r was started twice"),
    ((queued(), queued()), "r was queued while a request of this id was open"),
    ((queued(), STARTED, finished(), queued()), "r was queued again after it had run"),
    ((queued(), charged(1)), "r was charged while it did not run"),
    ((charged(1),), "r was charged while it did not run"),
    ((queued(), finished()), "r was settled while it did not run"),
    ((queued(), STARTED, finished(), finished()), "r was settled while it did not run"),
    ((queued(), STARTED, REJECTED), "r was rejected while it ran"),
    (
        (queued(), STARTED, finished(output=51, upstream="gpu-1")),
        "r: 51 output tokens, 50 were reserved (gpu-1 passed the limit)",
    ),
    (
        (queued(), STARTED, charged(9), finished()),
        "r: 5 output tokens, 9 were charged as they were made",
    ),
    (
        (queued(), STARTED, finished(outcome="lost")),
        "r: is lost, and charged 10 and 5 tokens, not its whole reservation",
    ),
    (
        (PRICED, queued(), STARTED, finished(cost=20.0)),
        "r: costs 20.0, by the prices of its endpoint 21.0",
    ),
]


@pytest.mark.parametrize(("events", "detail"), BROKEN)
def test_what_breaks_it_is_named(events: tuple[Event, ...], detail: str) -> None:
    assert details(*events) == [detail]


def test_two_partitions_have_requests_of_their_own() -> None:
    rule = LlmLifecycleRule()
    for partition in (0, 1):
        for event in (queued(), STARTED, finished()):
            rule.observe(ledger_event("throttle", event, partition=partition))
    assert [*rule.finish()] == []


def test_other_ledgers_are_not_regarded() -> None:
    rule = LlmLifecycleRule()
    rule.observe(ledger_event("access", PRICED))
    assert rule.lanes == {}


def test_an_id_that_the_service_has_forgotten_may_come_again() -> None:
    many = [queued(f"r{number}") for number in range(CAPACITY)]
    assert details(queued(), STARTED, finished(), *many, queued()) == []
