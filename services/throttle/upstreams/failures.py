"""The one error that a client gets after every attempt has failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.throttle.upstreams.calls import FailureCode, UpstreamsFailed
from services.throttle.upstreams.request_errors import RequestFailure

LEAST_RETRY_S = 1.0
MOST_TEXT = 500
"""Characters of the reasons of all upstreams: there may be 64 of them."""


@dataclass(frozen=True, slots=True)
class UpstreamAttempt:
    """A request that an upstream did not answer."""

    upstream: str
    failure: RequestFailure


def may_go_on(attempts: Sequence[UpstreamAttempt]) -> bool:
    """Return whether another upstream may be tried after these attempts."""
    return all(attempt.failure.may_retry for attempt in attempts)


def summarize(attempts: Sequence[UpstreamAttempt]) -> UpstreamsFailed:
    """Return the error of the attempts, of which there is at least one.

    Busy upstreams are shown only if all were: another failure says more.
    """
    failures = [attempt.failure for attempt in attempts]
    shown = next((item for item in reversed(failures) if item.verdict != "busy"), failures[-1])
    text = "; ".join(f"{attempt.upstream}: {attempt.failure.reason}" for attempt in attempts)
    return UpstreamsFailed(
        shown.status, _code(shown), text, _retry_after(failures), shown.engine_text
    )


def _code(failure: RequestFailure) -> FailureCode:
    if failure.verdict == "busy":
        return "upstream_busy"
    return "upstream_timeout" if failure.status == 504 else "upstream_failed"


def _retry_after(failures: Sequence[RequestFailure]) -> float | None:
    """Return the first time at which one that is busy takes requests again."""
    if any(failure.verdict != "busy" for failure in failures):
        return None
    times = [item.retry_after_s for item in failures if item.retry_after_s is not None]
    return min(times, default=LEAST_RETRY_S)


def no_upstream(reasons: Sequence[tuple[str, str]], wait_s: float) -> UpstreamsFailed:
    """Return the error of a request for which there is no upstream: (name, reason) of each."""
    text = describe_reasons(reasons)
    return UpstreamsFailed(503, "no_upstream", text, max(wait_s, LEAST_RETRY_S))


def closed() -> UpstreamsFailed:
    """Return the error of a request whose process gives its endpoint up."""
    return UpstreamsFailed(503, "no_upstream", "the process stops; send it again", LEAST_RETRY_S)


def describe_reasons(reasons: Sequence[tuple[str, str]]) -> str:
    text = "; ".join(f"{name}: {reason}" for name, reason in reasons) or "no upstream is configured"
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}..."


def no_room(wait_s: float) -> UpstreamsFailed:
    """Return the error of a request that no upstream had room for in time."""
    text = f"no upstream had room within {wait_s:g} s"
    return UpstreamsFailed(503, "upstream_busy", text, LEAST_RETRY_S)
