"""Adds to the failures in an answer what a user or an operator can do about them."""

from __future__ import annotations

from shared.contracts.failures import advice

Body = dict[str, object]


def add_advice(body: Body, spec: object = None) -> None:
    """Add the field `advice` to the field `failure` of a row, if both are known.

    `spec` is the specification of the job, if the row has none.
    """
    failure = body.get("failure")
    if not isinstance(failure, dict):
        return
    output = failure.get("output")
    printed = map(str, output) if isinstance(output, (list, tuple)) else ()
    spec = body.get("spec") or spec
    workdir = str(spec.get("workdir") or "") if isinstance(spec, dict) else ""
    if text := advice(
        str(failure.get("reason", "")), printed, workdir, str(failure.get("detail") or "")
    ):
        failure["advice"] = text
