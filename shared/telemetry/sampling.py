"""Which spans are sent: a share of the jobs, and always what somebody will ask for."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from shared.telemetry.names import AttributeValue, SpanName

ALL = 1.0

ALWAYS: frozenset[SpanName] = frozenset({"preempt", "fault", "reject_input", "start_failed"})
"""Preemptions, verdicts of fail-slow, dead letters, starts that came to nothing."""

ALWAYS_EVENTS = frozenset(
    {
        "job.failed.v1",
        "job.attempt-failed.v1",
        "job.rejected.v1",
        "node.lost.v1",
        "llm.rejected.v1",
        "policy.degraded.v1",
    }
)
"""Errors that share the name of their span with what went well."""

OBJECTIVE_MS: Mapping[SpanName, int] = {"place": 600_000, "llm": 30_000}
"""A job that waited longer for its GPUs, or a request for its turn, missed its objective."""


def is_kept(
    share: float, name: SpanName, traceparent: str, attributes: Mapping[str, AttributeValue]
) -> bool:
    """All traces of one job, and of the array it is of, are kept or dropped together."""
    if share >= ALL or name in ALWAYS or "error.type" in attributes:
        return True
    if attributes.get("event.type") in ALWAYS_EVENTS or missed_objective(name, attributes):
        return True
    return drawn(sampling_key(traceparent, attributes)) < share


def missed_objective(name: SpanName, attributes: Mapping[str, AttributeValue]) -> bool:
    """It waited longer than its objective allows."""
    waited_ms, most_ms = attributes.get("decision.waited_ms"), OBJECTIVE_MS.get(name)
    return most_ms is not None and isinstance(waited_ms, (int, float)) and waited_ms > most_ms


def sampling_key(traceparent: str, attributes: Mapping[str, AttributeValue]) -> str:
    """The job, without its index in an array; the trace where there is none."""
    job_id = attributes.get("job.id")
    return str(job_id).partition(".")[0] if job_id else traceparent[3:35]


def drawn(key: str) -> float:
    """The same number in [0, 1) for the same key, in every process and version."""
    digest = blake2b(key.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
