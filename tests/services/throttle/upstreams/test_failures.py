"""After all attempts the client gets one error: the most telling of them."""

from __future__ import annotations

from services.throttle.upstreams.failures import (
    UpstreamAttempt,
    may_go_on,
    no_room,
    no_upstream,
    summarize,
)
from services.throttle.upstreams.request_errors import TIMED_OUT, RequestFailure

DOWN = RequestFailure(502, "connection failed", "down")
BROKEN = RequestFailure(500, "status 500", "suspect", engine_text="out of memory")


def busy(status: int = 503, retry_after_s: float | None = None) -> RequestFailure:
    return RequestFailure(status, f"status {status}", "busy", retry_after_s=retry_after_s)


def attempts(*failures: RequestFailure) -> list[UpstreamAttempt]:
    return [UpstreamAttempt(f"u{index}", failure) for index, failure in enumerate(failures)]


def test_a_failure_says_more_than_a_busy_engine() -> None:
    error = summarize(attempts(BROKEN, busy(429, 5)))
    assert (error.status, error.code, error.retry_after_s) == (500, "upstream_failed", None)
    assert error.text == "u0: status 500; u1: status 429"
    assert error.engine_text == "out of memory"
    assert "memory" not in str(error)


def test_if_all_are_busy_the_first_that_is_free_again_counts() -> None:
    error = summarize(attempts(busy(503, 20), busy(429, 5), busy(429)))
    assert (error.status, error.code, error.retry_after_s) == (429, "upstream_busy", 5)
    assert summarize(attempts(busy())).retry_after_s == 1


def test_a_timeout_is_the_end_of_the_attempts() -> None:
    assert may_go_on(attempts(DOWN, BROKEN))
    assert not may_go_on(attempts(DOWN, TIMED_OUT))
    assert summarize(attempts(DOWN, TIMED_OUT)).code == "upstream_timeout"


def test_without_an_upstream_the_reasons_are_named() -> None:
    error = no_upstream([("a", "drained"), ("b", "TLS failed")], 0.2)
    assert (error.text, error.retry_after_s) == ("a: drained; b: TLS failed", 1.0)
    assert no_upstream([], 7).text == "no upstream is configured"
    assert no_upstream([], 7).retry_after_s == 7
    assert no_room(2.5).text == "no upstream had room within 2.5 s"
