"""The error responses of the proxy, in the format of the OpenAI API."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from aiohttp import web

from shared.contracts.llm import LlmRequestRejected

STATUS = {"queue_full": 429, "too_large": 400, "unknown_endpoint": 404, "unknown_tenant": 403}
"""HTTP status by reason of the decider."""


class OpenAiError(Exception):
    """Ends the request with this response; the text never quotes the client's body."""

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


def rejection_error(rejected: LlmRequestRejected, headers: Mapping[str, str]) -> OpenAiError:
    """`retry-after` is the decider's estimate of when the tenant's queue has room again."""
    all_headers = dict(headers)
    if rejected.retry_after_s is not None:
        all_headers |= retry_after(rejected.retry_after_s)
    status = STATUS.get(rejected.reason, 400)
    return OpenAiError(status, rejected.reason, rejected.detail, all_headers)


def retry_after(wait_s: float) -> dict[str, str]:
    return {"retry-after": str(max(1, ceil(wait_s))), "retry-after-ms": str(ceil(1000 * wait_s))}


def unavailable_error() -> OpenAiError:
    """Return the error of an endpoint whose lane another process holds, or will hold soon."""
    text = "endpoint not served by this process; retry"
    return OpenAiError(503, "endpoint_unavailable", text, retry_after(1))
