"""Every way in which the proxy says no, in the shape of the OpenAI API."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from aiohttp import web

from shared.contracts.llm import LlmRequestRejected

STATUS = {"queue_full": 429, "too_large": 400, "unknown_endpoint": 404, "unknown_tenant": 403}
"""Of the decider's reasons."""


class Problem(Exception):
    """Ends the request with this answer; the text never quotes what the client sent."""

    def __init__(
        self, status: int, code: str, text: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.text = text
        self.headers = dict(headers or {})

    def response(self) -> web.Response:
        kind = "rate_limit_error" if self.status == 429 else "invalid_request_error"
        if self.status >= 500:
            kind = "server_error"
        error = {"message": self.text, "type": kind, "code": self.code, "param": None}
        return web.json_response({"error": error}, status=self.status, headers=self.headers)


def of_rejection(rejected: LlmRequestRejected, headers: Mapping[str, str]) -> Problem:
    """`retry-after` is the decider's estimate: when the tenant's line will have room again."""
    found = dict(headers)
    if rejected.retry_after_s is not None:
        found |= retry_after(rejected.retry_after_s)
    status = STATUS.get(rejected.reason, 400)
    return Problem(status, rejected.reason, rejected.detail, found)


def retry_after(wait_s: float) -> dict[str, str]:
    return {"retry-after": str(max(1, ceil(wait_s))), "retry-after-ms": str(ceil(1000 * wait_s))}


def elsewhere() -> Problem:
    """Another process has the lane, or will have it in a moment."""
    return Problem(503, "endpoint_unavailable", "the endpoint is not served here", retry_after(1))
