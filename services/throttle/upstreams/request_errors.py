"""Failures of an upstream: those that may be retried elsewhere, and those that count against it.

Only failures before the first byte of an answer are judged; afterwards nothing is retried.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Literal

import aiohttp

Verdict = Literal["down", "failed", "suspect", "busy", "answered"]
"""The judgement of an upstream by a failure.

- `down`: it serves nothing, as it cannot be reached or refuses the credentials of this service;
  its breaker opens at once.
- `failed`: it did not serve a request; its breaker counts.
- `suspect`: it failed, which may be the fault of the request: it counts only if another upstream
  serves the same request. Otherwise one poisonous request would take every engine away.
- `busy`: it has no room now, and rests.
- `answered`: nothing; the answer cannot be passed on.
"""
REST_S = 1.0
"""Rest of a busy upstream that names no time."""
LONGEST_RETRY_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """The failure of an upstream; `status` is for the client if no other upstream answers."""

    status: int
    reason: str
    """Names no part of a request or an answer, and so may be logged."""
    verdict: Verdict
    may_retry: bool = True
    retry_after_s: float | None = None
    engine_text: str = ""
    """The message of the engine, which may quote the prompt: for the client alone."""


TIMED_OUT = RequestFailure(504, "no answer in time", "failed", may_retry=False)
"""The engine may still be working on it: a second one would work on the same request."""


TLS_FAILED = RequestFailure(502, "TLS failed", "down")
ERRORS: tuple[tuple[type[Exception], RequestFailure], ...] = (
    (aiohttp.ClientConnectorCertificateError, TLS_FAILED),
    (ssl.SSLError, TLS_FAILED),
    (aiohttp.ClientConnectorDNSError, RequestFailure(502, "name not resolved", "down")),
    (aiohttp.ConnectionTimeoutError, RequestFailure(502, "connection timed out", "down")),
    (aiohttp.ClientConnectorError, RequestFailure(502, "connection failed", "down")),
    (TimeoutError, TIMED_OUT),
    # Of the client library too: the address is all that it can refuse to send to.
    (ValueError, RequestFailure(502, "address is invalid", "down")),
    (
        aiohttp.ServerDisconnectedError,
        RequestFailure(502, "connection closed without an answer", "failed"),
    ),
    (OSError, RequestFailure(502, "connection reset", "failed")),
    (
        aiohttp.ClientPayloadError,
        RequestFailure(502, "answer broke off before its first byte", "failed"),
    ),
    (Exception, RequestFailure(502, "answer is not valid HTTP", "failed")),
)
"""The meaning of each error of a connection; the first of which it is an instance counts."""


def failure_of_error(error: Exception) -> RequestFailure:
    """Judge an error of the connection before the first byte of the answer."""
    return next(failure for kind, failure in ERRORS if isinstance(error, kind))


def failure_of_status(
    status: int, headers: Mapping[str, str], unix_s: float
) -> RequestFailure | None:
    """Judge the status of an answer; None if the answer is for the client.

    `unix_s` is the time, for a `retry-after` that is a date.
    """
    if status < 300:
        return None
    reason = f"status {status}"
    if status in (429, 503):
        retry_after_s = parse_retry_after(headers, unix_s)
        return RequestFailure(status, reason, "busy", retry_after_s=retry_after_s)
    if status in (401, 407):
        return RequestFailure(502, f"{reason}: credentials refused", "down")
    if status == 403:
        # Some services refuse a prompt so: it must not take the upstream away from others.
        return RequestFailure(502, f"{reason}: refused", "suspect")
    if status < 400:
        return RequestFailure(502, f"{reason}: redirects are not followed", "down")
    if status in (502, 504):
        return RequestFailure(status, reason, "failed")
    # 501 says that the engine has no such route: an answer, and the same elsewhere.
    if status >= 500 and status != 501:
        return RequestFailure(status, reason, "suspect")
    return None


def parse_retry_after(headers: Mapping[str, str], unix_s: float) -> float | None:
    """Return the seconds of `retry-after-ms` or `retry-after`, a number or a date, bounded."""
    seconds = _number(headers.get("retry-after-ms", ""))
    if seconds is not None:
        seconds /= 1000
    else:
        text = headers.get("retry-after", "")
        seconds = _number(text)
        if seconds is None:
            seconds = _until_date(text, unix_s)
    if seconds is None:
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _until_date(text: str, unix_s: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return date.timestamp() - unix_s
