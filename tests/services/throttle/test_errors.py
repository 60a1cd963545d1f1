from __future__ import annotations

import json

import pytest

from services.throttle.errors import OpenAiError, rejection_error, retry_after, unavailable_error
from shared.contracts.llm import LlmRequestRejected


def rejected(reason: str, retry_after_s: float | None = None) -> LlmRequestRejected:
    return LlmRequestRejected(
        request_id="r1", tenant="a", reason=reason, detail="why", retry_after_s=retry_after_s
    )


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("queue_full", 429),
        ("too_large", 400),
        ("unknown_endpoint", 404),
        ("unknown_tenant", 403),
        ("a_new_reason", 400),
    ],
)
def test_each_reason_has_a_status(reason: str, status: int) -> None:
    error = rejection_error(rejected(reason), {"x-request-id": "r1"})
    assert (error.status, error.code, error.text) == (status, reason, "why")
    assert error.headers == {"x-request-id": "r1"}


def test_a_rejection_with_an_estimate_carries_it_as_headers() -> None:
    error = rejection_error(rejected("queue_full", 2.3), {})
    assert error.headers == {"retry-after": "3", "retry-after-ms": "2300"}


def test_a_retry_is_at_least_a_second_away() -> None:
    assert retry_after(0.0) == {"retry-after": "1", "retry-after-ms": "0"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, "rate_limit_error"), (400, "invalid_request_error"), (503, "server_error")],
)
def test_the_body_names_the_kind_of_error(status: int, kind: str) -> None:
    response = OpenAiError(status, "code", "text").response()
    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == {
        "error": {"message": "text", "type": kind, "code": "code", "param": None}
    }


def test_an_unavailable_endpoint_may_be_retried() -> None:
    error = unavailable_error()
    assert (error.status, error.headers["retry-after"]) == (503, "1")
