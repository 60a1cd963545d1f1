"""Adds to the failures in an answer what a user or an operator can do about them."""

from __future__ import annotations

from shared.contracts.failures import advice

Body = dict[str, object]


def add_advice(body: Body) -> None:
    """Add the field `advice` to the field `failure` of a row, if both are known."""
    failure = body.get("failure")
    if not isinstance(failure, dict):
        return
    output = failure.get("output")
    printed = map(str, output) if isinstance(output, (list, tuple)) else ()
    if text := advice(str(failure.get("reason", "")), printed):
        failure["advice"] = text
