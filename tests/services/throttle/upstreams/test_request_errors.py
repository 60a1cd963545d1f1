"""Each failure has a verdict on the upstream, and a rule whether another may be tried."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import aiohttp
import pytest

from services.throttle.upstreams.request_errors import (
    LONGEST_RETRY_AFTER_S,
    failure_of_error,
    failure_of_status,
    parse_retry_after,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("error", "verdict", "may_retry"),
    [
        (aiohttp.ConnectionTimeoutError(), "down", True),
        (aiohttp.ServerDisconnectedError(), "failed", True),
        (aiohttp.ClientOSError(104, "reset"), "failed", True),
        (ConnectionResetError(), "failed", True),
        (aiohttp.ClientPayloadError(), "failed", True),
        (aiohttp.SocketTimeoutError(), "failed", False),
        (TimeoutError(), "failed", False),
        (aiohttp.InvalidURL("http://["), "down", True),
        (ssl.SSLError(), "down", True),
        (aiohttp.ClientError(), "failed", True),
        (ValueError(), "down", True),
    ],
)
def test_an_error_is_retried_unless_the_engine_may_still_work(
    error: Exception, verdict: str, may_retry: bool
) -> None:
    failure = failure_of_error(error)
    assert (failure.verdict, failure.may_retry) == (verdict, may_retry)


@pytest.mark.parametrize(
    ("status", "verdict", "shown"),
    [
        (429, "busy", 429),
        (503, "busy", 503),
        (500, "suspect", 500),
        (599, "suspect", 599),
        (502, "failed", 502),
        (504, "failed", 504),
        (401, "down", 502),
        (403, "suspect", 502),
        (307, "down", 502),
    ],
)
def test_a_status_that_is_no_answer_has_a_verdict(status: int, verdict: str, shown: int) -> None:
    failure = failure_of_status(status, {}, NOW)
    assert failure is not None
    assert (failure.verdict, failure.status, failure.may_retry) == (verdict, shown, True)


@pytest.mark.parametrize("status", [200, 201, 400, 404, 408, 413, 422, 501])
def test_other_statuses_are_answers(status: int) -> None:
    assert failure_of_status(status, {"retry-after": "5"}, NOW) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "3", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:07 GMT"}, 7.0),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "1e12"}, LONGEST_RETRY_AFTER_S),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({}, None),
    ],
)
def test_retry_after_is_a_bounded_number_or_date(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert parse_retry_after(headers, NOW) == seconds
    failure = failure_of_status(503, headers, NOW)
    assert failure is not None
    assert failure.retry_after_s == seconds
