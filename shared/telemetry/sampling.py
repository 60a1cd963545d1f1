"""Selects the spans to export: those of a share of the jobs, and all errors."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from shared.telemetry.names import AttributeValue, SpanName

ALL = 1.0

ALWAYS: frozenset[SpanName] = frozenset({"preempt", "fault", "reject_input", "start_failed"})
"""Preemptions, verdicts of fail-slow, dead letters and failed starts."""

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
"""Errors whose spans share their name with successful outcomes."""

OBJECTIVE_MS: Mapping[SpanName, int] = {"place": 600_000, "llm": 30_000}
"""Longest wait, in ms, that meets the objective: of a job for GPUs, of a request for service."""


def is_kept(
    share: float, name: SpanName, traceparent: str, attributes: Mapping[str, AttributeValue]
) -> bool:
    """True for a span to export; all traces of a job, and of its array, share the outcome."""
    if share >= ALL or name in ALWAYS or "error.type" in attributes:
        return True
    if attributes.get("event.type") in ALWAYS_EVENTS or missed_objective(name, attributes):
        return True
    return hash_share(sampling_key(traceparent, attributes)) < share


def missed_objective(name: SpanName, attributes: Mapping[str, AttributeValue]) -> bool:
    """True if the wait exceeds the objective."""
    waited_ms, limit_ms = attributes.get("decision.waited_ms"), OBJECTIVE_MS.get(name)
    return limit_ms is not None and isinstance(waited_ms, (int, float)) and waited_ms > limit_ms


def sampling_key(traceparent: str, attributes: Mapping[str, AttributeValue]) -> str:
    """Return the job id without array index, or the trace id if the span has no job."""
    job_id = attributes.get("job.id")
    return str(job_id).partition(".")[0] if job_id else traceparent[3:35]


def hash_share(key: str) -> float:
    """Return a number in [0, 1) that depends on the key alone."""
    digest = blake2b(key.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
