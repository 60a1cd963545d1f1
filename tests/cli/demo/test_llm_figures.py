"""Requests of the demo's tenants are counted from the ledger, with those that passed them."""

from __future__ import annotations

from cli.demo.llm_figures import LlmFigures, percentile
from shared.contracts.base import Event
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
)
from shared.ledger.decider import Fact


def seen(*events: Event) -> LlmFigures:
    figures = LlmFigures("abuser")
    figures.see(
        Fact(event, "throttle", 0, number, 0, at=0) for number, event in enumerate(events, start=1)
    )
    return figures


def queued(request_id: str, tenant: str) -> LlmRequestQueued:
    return LlmRequestQueued(
        request_id=request_id, tenant=tenant, endpoint="m", prompt_tokens=5, max_output_tokens=8
    )


def started(request_id: str, tenant: str, waited_ms: int = 0) -> LlmRequestStarted:
    return LlmRequestStarted(request_id=request_id, tenant=tenant, waited_ms=waited_ms)


def test_starts_of_the_abuser_are_counted_for_others_that_wait() -> None:
    figures = seen(
        queued("x1", "abuser"),
        queued("x2", "abuser"),
        queued("a", "vision"),
        started("x1", "abuser"),
        started("a", "vision", 40),
        started("x2", "abuser"),
    )
    assert (figures.ahead, figures.passed_by) == ([2], [1])
    assert figures.tenants["vision"].waits_ms == [40]


def test_tokens_and_rejections_are_those_of_the_tenant() -> None:
    figures = seen(
        queued("a", "vision"),
        started("a", "vision"),
        LlmRequestFinished(request_id="a", tenant="vision", prompt_tokens=5, output_tokens=8),
        queued("b", "vision"),
        LlmRequestRejected(request_id="b", tenant="vision", reason="cancelled"),
        LlmRequestRejected(request_id="x", tenant="abuser", reason="queue_full"),
    )
    assert figures.tenants["vision"].summary() == {
        "requests": 2,
        "finished": 1,
        "prompt_tokens": 5,
        "output_tokens": 8,
        "p50_wait_s": 0.0,
        "p99_wait_s": 0.0,
        "rejected": {"cancelled": 1},
    }
    assert (figures.refused("vision"), figures.refused("abuser")) == (0, 1)
    assert figures.summary()["abuser"] == "abuser"


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([], 50) == 0
    assert [percentile(range(1, 101), percent) for percent in (50, 99, 100)] == [50, 99, 100]
