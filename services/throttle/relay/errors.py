"""Errors in the form of the OpenAI API, with the headers that its clients act on.

The official clients retry 408, 409, 429 and 5xx by themselves, and wait for `retry-after-ms` or
`retry-after`; above 120 s they give up. `x-should-retry` overrides the status. LiteLLM also
classifies by the text and the type of the error, and waits for an integer `retry-after` of at most
60 s. So a request that is shed gets 429 with both headers, and a refusal for good says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

import msgspec

MOST_RETRY_S = 60
"""Longest wait that a client is advised: it comes again and learns the rest."""
RATE, REQUEST, SERVER = "rate_limit_error", "invalid_request_error", "server_error"


class Verdict(NamedTuple):
    """The status and type of a reason, and whether the same request may succeed later."""

    status: int
    type: str
    retries: bool


SHED = Verdict(429, RATE, True)
EXHAUSTED = Verdict(429, "insufficient_quota", False)
INVALID = Verdict(400, REQUEST, False)
UNAVAILABLE = Verdict(503, SERVER, True)
VERDICTS: Mapping[str, Verdict] = {
    "queue_full": SHED,
    "tenant_busy": SHED,
    "queue_timeout": SHED,
    "request_rate": SHED,
    "tenant_rate": SHED,
    "application_rate": SHED,
    "service_share": SHED,
    "too_large": INVALID,
    "above_budget": INVALID,
    "invalid_body": INVALID,
    "invalid_request_id": INVALID,
    "invalid_http": INVALID,
    "expectation_failed": Verdict(417, REQUEST, False),
    "invalid_api_key": Verdict(401, "authentication_error", False),
    "not_allowed": Verdict(403, "permission_error", False),
    "unknown_tenant": Verdict(403, "permission_error", False),
    "model_not_found": Verdict(404, "not_found_error", False),
    "unknown_url": Verdict(404, REQUEST, False),
    "method_not_allowed": Verdict(405, REQUEST, False),
    "unknown_endpoint": Verdict(404, "not_found_error", False),
    "endpoint_deleted": Verdict(404, "not_found_error", False),
    # The clients would retry a conflict, which lasts.
    "request_id_taken": Verdict(409, REQUEST, False),
    "already_served": Verdict(409, REQUEST, False),
    "body_too_large": Verdict(413, REQUEST, False),
    "answer_too_large": Verdict(413, REQUEST, False),
    "answer_not_stored": Verdict(500, SERVER, False),
    "body_timeout": Verdict(408, REQUEST, True),
    "process_busy": UNAVAILABLE,
    "lost": UNAVAILABLE,
    "process_stopped": UNAVAILABLE,
    "endpoint_unavailable": UNAVAILABLE,
    "endpoint_drained": UNAVAILABLE,
    "upstream_unavailable": UNAVAILABLE,
    "upstream_failed": Verdict(502, SERVER, True),
    "upstream_timeout": Verdict(504, SERVER, False),
    "internal_error": Verdict(500, SERVER, False),
}
BUDGET = ("_tokens", "_requests", "_money")
"""Endings of the reasons of budgets, as `tenant_tokens`."""


@dataclass(eq=False)
class ErrorAnswer(Exception):
    """Ends a request with this answer; the message never quotes the client's body."""

    status: int
    message: str
    type: str
    code: str | None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return msgspec.json.encode({"error": error})

    @property
    def event(self) -> bytes:
        """The error within a stream whose headers are sent."""
        return b"data: %b\n\n" % self.body


def refuse(
    reason: str,
    message: str,
    *,
    param: str | None = None,
    retry_after_s: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> ErrorAnswer:
    """Return the answer to a request that is not served, for a reason of the decider or a proxy.

    `retry_after_s` is the time at which a retry may succeed; without it a reason that may pass
    advises a second, and a budget that nothing refills is refused for good.
    """
    verdict = _verdict(reason, retry_after_s)
    advice = retry_advice(retry_after_s or 1.0) if verdict.retries else {"x-should-retry": "false"}
    return ErrorAnswer(
        verdict.status, message, verdict.type, reason, param, {**(headers or {}), **advice}
    )


def retry_advice(wait_s: float) -> dict[str, str]:
    """Return the headers by which clients wait so long, or for the longest wait they accept."""
    wait_s = min(max(wait_s, 0.0), MOST_RETRY_S)
    return {
        "retry-after": str(max(1, ceil(wait_s))),
        "retry-after-ms": str(ceil(1000 * wait_s)),
        "x-should-retry": "true",
    }


def _verdict(reason: str, retry_after_s: float | None) -> Verdict:
    if reason in VERDICTS:
        return VERDICTS[reason]
    if reason.endswith(BUDGET):
        return SHED if retry_after_s is not None else EXHAUSTED
    return INVALID if retry_after_s is None else SHED
