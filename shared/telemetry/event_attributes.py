"""Attributes of an event's span: ids and the values that decided, never a body or free text."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from shared.contracts.placement import JobPlaced
from shared.telemetry.names import AttributeKey, AttributeValue

if TYPE_CHECKING:
    from shared.contracts.base import Event
    from shared.ledger.decider import Fact

_FIELDS: tuple[tuple[AttributeKey, str], ...] = (
    ("job.id", "job_id"),
    ("tenant.id", "tenant"),
    ("node.id", "node_id"),
    ("pool.id", "pool"),
    ("allocation.id", "allocation_id"),
    ("decision.reason", "reason"),
    ("decision.policy", "policy"),
    ("decision.score", "score"),
    ("decision.waited_ms", "waited_ms"),
    ("decision.short_gpus", "short_gpus"),
    ("decision.model_sha256", "model_sha256"),
    ("decision.solver", "solver"),
    ("decision.slowdown", "slowdown"),
)
_TERMS: tuple[tuple[AttributeKey, str], ...] = (
    ("decision.waiting", "waiting"),
    ("decision.objective", "objective"),
    ("decision.greedy_objective", "greedy_objective"),
    ("decision.bound", "bound"),
)
_MACHINE_READABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")
DECIDING = ("job.id", "decision.waited_ms")
MAX_NODES = 16
"""Nodes of a large gang that are listed; the event has all of them."""

Attributes = dict[str, AttributeValue]


def attributes_of(fact: Fact) -> Attributes:
    """Return the attributes; `decision.id` is the accepted record, `event.id` the event in it."""
    event, event_id = fact.event, fact.id
    attributes: Attributes = {
        "event.id": event_id,
        "event.type": event.TYPE,
        "decision.id": event_id.rpartition("/")[0],
        "messaging.system": "kafka",
        "messaging.operation.name": "decide",
        "messaging.operation.type": "process",
        "messaging.destination.name": fact.ledger,
        "messaging.destination.partition.id": str(fact.partition),
    }
    if fact.cause:
        attributes["cause.id"] = fact.cause
    for key, field in _present(type(event)):
        _put(attributes, key, getattr(event, field))
    if isinstance(event, JobPlaced):
        attributes["allocation.id"] = fact.place
        nodes = dict.fromkeys(lease.node_id for lease in event.allocations)
        attributes["decision.nodes"] = ",".join(islice(nodes, MAX_NODES))
        for key, term in _TERMS:
            if term in event.terms:
                attributes[key] = _plain(event.terms[term])
        if "position" in event.terms:
            attributes["decision.position"] = int(event.terms["position"]) + 1
    return attributes


def sampled_by(event: Event) -> Attributes:
    """Return the attributes by which a span is kept or not: most are not, and need no others."""
    attributes: Attributes = {"event.type": event.TYPE}
    for key, field in _deciding(type(event)):
        _put(attributes, key, getattr(event, field))
    return attributes


def _plain(value: float) -> int | float:
    """Return counts as integers: all terms are floats on the wire."""
    return int(value) if value.is_integer() else value


@cache
def _present(kind: type[Event]) -> tuple[tuple[AttributeKey, str], ...]:
    return tuple((key, field) for key, field in _FIELDS if field in kind.model_fields)


@cache
def _deciding(kind: type[Event]) -> tuple[tuple[AttributeKey, str], ...]:
    return tuple(pair for pair in _present(kind) if pair[0] in DECIDING)


def _put(attributes: Attributes, key: AttributeKey, value: object) -> None:
    """Add a scalar; a reason in free text is left out: only snake_case is machine-readable."""
    if not isinstance(value, (str, int, float)) or value == "":
        return
    if key == "decision.reason" and not _MACHINE_READABLE.fullmatch(str(value)):
        return
    attributes[key] = value
