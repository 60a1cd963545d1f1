"""Every span, attribute and metric name of Berth, as closed lists: a typo fails type checking."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

StartSpan = Literal["submit", "admit", "enqueue", "rank", "hold", "place", "ready", "start"]
"""The spans of the one short trace from a job's submission to its start."""

LaterSpan = Literal[
    "access",
    "answer",
    "cancel",
    "decide",
    "degrade",
    "fault",
    "finish",
    "llm",
    "migrate",
    "mitigate",
    "node",
    "note",
    "preempt",
    "quota",
    "rank_queue",
    "readmit",
    "reject_input",
    "release",
    "requeue",
    "resize",
    "start_failed",
    "stop",
]
"""The spans of later decisions: each is the root of its own trace, with a link to its cause."""

SpanName = Literal[StartSpan, LaterSpan]

AttributeKey = Literal[
    "allocation.id",
    "cause.id",
    "decision.bound",
    "decision.greedy_objective",
    "decision.id",
    "decision.learned",
    "decision.model_sha256",
    "decision.nodes",
    "decision.objective",
    "decision.policy",
    "decision.position",
    "decision.reason",
    "decision.score",
    "decision.short_gpus",
    "decision.slowdown",
    "decision.solver",
    "decision.waited_ms",
    "decision.waiting",
    "error.type",
    "event.id",
    "event.type",
    "http.request.method",
    "http.response.status_code",
    "http.route",
    "job.id",
    "messaging.batch.message_count",
    "messaging.destination.name",
    "messaging.destination.partition.id",
    "messaging.kafka.offset",
    "messaging.operation.name",
    "messaging.operation.type",
    "messaging.system",
    "node.id",
    "pool.id",
    "tenant.id",
]
"""The messaging conventions are not stable yet: their names are defined here alone."""

AttributeValue = str | int | float | bool

START_EVENTS: Mapping[str, StartSpan] = MappingProxyType(
    {
        "job.admitted": "admit",
        "job.deferred": "admit",
        "job.rejected": "admit",
        "job.enqueued": "enqueue",
        "job.held": "hold",
        "job.placed": "place",
        "workers.ready": "ready",
        "job.started": "start",
    }
)
"""By wire name without its version, so that `v2` of an event keeps its span."""

LATER_EVENTS: Mapping[str, LaterSpan] = MappingProxyType(
    {
        "allocation.released": "release",
        "array.cancel-requested": "cancel",
        "array.ended": "note",
        "array.program-noted": "note",
        "attempt.noted": "note",
        "capacity.noted": "note",
        "command.accepted": "answer",
        "command.refused": "answer",
        "endpoint.configured": "access",
        "endpoint.deleted": "access",
        "fault.cleared": "fault",
        "fault.dismissed": "fault",
        "fault.injected": "fault",
        "fault.injection-ended": "fault",
        "fault.suspected": "fault",
        "gangs.noted": "note",
        "input.rejected": "reject_input",
        "job.attempt-failed": "finish",
        "job.cancel-requested": "cancel",
        "job.cancelled": "finish",
        "job.failed": "finish",
        "job.migrated": "migrate",
        "job.preempted": "preempt",
        "job.readmitted": "readmit",
        "job.requeued": "requeue",
        "job.resized": "resize",
        "job.size-noted": "note",
        "job.start-failed": "start_failed",
        "job.stop-requested": "stop",
        "job.start-estimated": "note",
        "job.checkpointed": "note",
        "job.progressed": "note",
        "job.succeeded": "finish",
        "jobs.released": "release",
        "key.created": "access",
        "key.revoked": "access",
        "clock.stepped": "note",
        "llm.capacity-noted": "note",
        "llm.charged": "note",
        "llm.clock-stepped": "note",
        "llm.counters-rebased": "note",
        "llm.finished": "llm",
        "llm.queued": "llm",
        "llm.rejected": "llm",
        "llm.started": "llm",
        "mitigation.accounted": "note",
        "mitigation.applied": "mitigate",
        "mitigation.breaker": "mitigate",
        "mitigation.carried-out": "note",
        "mitigation.cleared": "mitigate",
        "mitigation.expected": "note",
        "mitigation.measured": "note",
        "mitigation.planned": "mitigate",
        "mitigation.turned-down": "mitigate",
        "node.approved": "access",
        "node.cordoned": "node",
        "node.credential-renewed": "access",
        "node.enrolled": "access",
        "node.forgotten": "access",
        "node.health": "note",
        "node.health-noted": "note",
        "node.joined": "node",
        "node.lost": "node",
        "node.problem-noted": "node",
        "node.revoked": "access",
        "node.token-created": "access",
        "node.token-revoked": "access",
        "node.uncordoned": "node",
        "nodes.noted": "note",
        "node.gpus-noted": "note",
        "intervals.drifted": "degrade",
        "intervals.recovered": "degrade",
        "pace.learned": "note",
        "pool.configured": "access",
        "queue.changed": "note",
        "queue.ranked": "rank_queue",
        "queue.reranked": "rank_queue",
        "quota.changed": "quota",
        "preemption.paused": "preempt",
        "job.stop-deferred": "preempt",
        "policy.degraded": "degrade",
        "policy.restored": "degrade",
        "ranks.changed": "note",
        "ranks.noted": "note",
        "shadow.ranked": "note",
        "tenant.noted": "note",
        "terminal.closed": "access",
        "terminal.opened": "access",
        "tenant.registered": "access",
        "tenant.retired": "access",
        "thresholds.adjusted": "note",
    }
)


BOOKKEEPING: frozenset[SpanName] = frozenset({"note", "release", "answer"})
"""These repeat a decision that has the span of another event."""


@cache
def span_of(wire_type: str) -> SpanName:
    """Return the name of the event's span; `decide` if none is listed, the type is an attribute."""
    name = _unversioned(wire_type)
    return START_EVENTS.get(name) or LATER_EVENTS.get(name, "decide")


@cache
def continues_trace(wire_type: str) -> bool:
    """True for the decisions of a job's start; all others begin a trace of their own."""
    return _unversioned(wire_type) in START_EVENTS


def _unversioned(wire_type: str) -> str:
    name, _, version = wire_type.rpartition(".")
    return name if version[:1] == "v" and version[1:].isdecimal() else wire_type
