"""LLM requests run from the queue to their end; tenants pay for the served ones."""

from __future__ import annotations

import pytest

from shared.contracts.base import Event
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
)
from shared.projections.ledger_events import NotFolded
from shared.projections.llm import LlmRequestRow, LlmTenantRow, fold_account, fold_request
from tests.shared.ledger_events import AT, ledger_event

QUEUED = LlmRequestQueued(
    request_id="r",
    tenant="red",
    endpoint="chat",
    application="app",
    prompt_tokens=10,
    max_output_tokens=50,
    wait_s=1.5,
)
STARTED = LlmRequestStarted(request_id="r", tenant="red", waited_ms=900)
FINISHED = LlmRequestFinished(
    request_id="r", tenant="red", prompt_tokens=10, output_tokens=42, served_ms=700
)
CANCELLED = LlmRequestFinished(
    request_id="r",
    tenant="red",
    prompt_tokens=10,
    output_tokens=7,
    served_ms=70,
    outcome="cancelled",
    cached_tokens=4,
    upstream="a",
    reason="client_left",
    cost=0.25,
)
REJECTED = LlmRequestRejected(
    request_id="r", tenant="red", reason="too_long", detail="prompt: too long", retry_after_s=2.0
)


def request_row(*messages: Event) -> LlmRequestRow:
    row = LlmRequestRow("0/red/r", 0, "r")
    for seq, message in enumerate(messages):
        fold_request(row, ledger_event("throttle", message, seq=seq, at=AT + seq))
    return row


def account_row(*messages: Event) -> LlmTenantRow:
    row = LlmTenantRow("0/red", 0, "red")
    for message in messages:
        fold_account(row, ledger_event("throttle", message))
    return row


def test_a_request_is_queued_with_its_estimated_wait() -> None:
    row = request_row(QUEUED)
    assert (row.state, row.tenant, row.endpoint, row.application) == (
        "queued",
        "red",
        "chat",
        "app",
    )
    assert (row.prompt_tokens, row.wait_s, row.queued_at) == (10, 1.5, AT)


def test_a_request_is_served_to_its_end() -> None:
    row = request_row(QUEUED, STARTED)
    assert (row.state, row.waited_ms, row.started_at) == ("running", 900, AT + 1)
    row = request_row(QUEUED, STARTED, FINISHED)
    assert (row.state, row.output_tokens, row.served_ms) == ("finished", 42, 700)
    assert row.ended_at == AT + 2


def test_a_request_has_what_it_was_for_and_what_it_cost() -> None:
    queued = QUEUED.model_copy(
        update={"user": "u", "model": "chat-de", "interaction": "i", "stage": 2, "ahead": 4}
    )
    row = request_row(queued, STARTED, CANCELLED)
    assert (row.user_id, row.model, row.interaction, row.stage) == ("u", "chat-de", "i", 2)
    assert (row.ahead, row.max_output_tokens) == (4, 50)
    assert (row.state, row.outcome, row.reason) == ("finished", "cancelled", "client_left")
    assert (row.upstream, row.cached_tokens, row.cost) == ("a", 4, 0.25)


def test_a_rejected_request_has_its_reason() -> None:
    row = request_row(REJECTED)
    assert (row.state, row.reason, row.ended_at) == ("rejected", "too_long", AT)
    assert (row.queued_at, row.detail, row.retry_after_s) == (AT, "prompt: too long", 2.0)


def test_a_request_that_was_rejected_may_be_sent_again_with_its_id() -> None:
    row = request_row(REJECTED, QUEUED)
    assert (row.state, row.reason, row.detail, row.retry_after_s) == ("queued", "", "", None)
    assert (row.queued_at, row.ended_at) == (AT + 1, 0)


def test_a_tenant_is_charged_for_finished_requests_only() -> None:
    row = account_row(FINISHED, REJECTED, FINISHED)
    assert (row.requests, row.rejected) == (2, 1)
    assert (row.prompt_tokens, row.output_tokens) == (20, 84)
    assert (row.cached_tokens, row.wasted_tokens, row.cost) == (0, 0, 0.0)


@pytest.mark.parametrize("outcome", ["cancelled", "failed", "lost"])
def test_output_of_a_request_that_was_not_completed_is_wasted(outcome: str) -> None:
    row = account_row(FINISHED, CANCELLED.model_copy(update={"outcome": outcome}))
    assert (row.requests, row.output_tokens, row.wasted_tokens) == (2, 49, 7)
    assert (row.cached_tokens, row.cost) == (4, 0.25)


def test_an_event_without_a_fold_is_an_error() -> None:
    with pytest.raises(NotFolded):
        account_row(QUEUED)


def test_a_request_that_was_refused_at_once_has_its_endpoint_and_user() -> None:
    fields = {"endpoint": "chat", "application": "search", "user": "eve", "model": "m2"}
    row = request_row(REJECTED.model_copy(update=fields))
    assert (row.endpoint, row.application, row.user_id, row.model) == (
        "chat",
        "search",
        "eve",
        "m2",
    )
