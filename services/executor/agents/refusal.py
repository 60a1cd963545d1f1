"""Refusals of requests of agents, as HTTP statuses with a reason."""

from __future__ import annotations

from pydantic import ValidationError

from shared.contracts.agents import RequestProblem

MAX_VALUE_CHARS = 64


class Refused(Exception):
    """A request is refused; `retry_after_s` is None if a repeated one fares no better."""

    def __init__(
        self, status: int, reason: str, detail: str, retry_after_s: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.problem = RequestProblem(reason=reason, detail=detail[:1024])
        self.retry_after_s = retry_after_s


def malformed(error: ValidationError) -> Refused:
    """Return the 400 for an invalid message: field, value and rule of its first fault."""
    fault = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(step) for step in fault["loc"]) or "body"
    rule = str(fault["msg"])
    return Refused(400, "malformed", f"{field[:128]}: {_shown(fault['input'])}; {rule}")


def unavailable(reason: str, detail: str) -> Refused:
    """Return a 503: the agent tries the next executor."""
    return Refused(503, reason, detail, 1)


def limited(resource: str, rule: str, wait_s: float) -> Refused:
    """Return a 429 of a node that sends more than its share."""
    return Refused(429, "rate_limited", f"{resource}: {rule}", max(1, round(wait_s)))


def _shown(value: object) -> str:
    shown = repr(value) if isinstance(value, str | int | float | bool | None) else "not a scalar"
    return shown if len(shown) <= MAX_VALUE_CHARS else f"{shown[:MAX_VALUE_CHARS]}..."
