"""Every topic, who reads it, and who answers for what cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["ledger", "ledgered", "soft", "public"]

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """How a topic is made; `retention_ms` -1 keeps for ever, `flush` syncs each record to disk."""

    name: str
    kind: Kind
    retention_ms: int
    flush: bool
    single_partition: bool = False


LEDGERS: tuple[str, ...] = ("access", "admission", "priority", "placement", "failslow", "throttle")

TOPICS: dict[str, TopicSpec] = {
    spec.name: spec
    for spec in (
        *(TopicSpec(name, "ledger", -1, True, name == "access") for name in LEDGERS),
        TopicSpec("access.commands", "ledgered", -1, True, single_partition=True),
        TopicSpec("commands", "ledgered", -1, True),
        TopicSpec("reports", "ledgered", -1, True),
        TopicSpec("llm.requests", "ledgered", -1, True),
        TopicSpec("heartbeats", "soft", DAY_MS, False),
        TopicSpec("telemetry", "soft", DAY_MS, False),
        TopicSpec("logs", "soft", DAY_MS, False),
        TopicSpec("events", "public", 30 * DAY_MS, False),
        TopicSpec("dead", "public", 7 * DAY_MS, False),
    )
}

INPUTS: dict[str, tuple[str, ...]] = {
    "access": ("access.commands",),
    "admission": ("commands", "placement"),
    "priority": ("admission", "placement"),
    "placement": ("commands", "admission", "priority", "reports", "failslow"),
    "failslow": ("commands", "placement"),
    "throttle": ("llm.requests",),
}
"""Ledgered inputs of each decider, in the input vector of its records."""

ACCESS_FACTS = frozenset({"pool.configured.v1", "tenant.registered.v1", "tenant.retired.v1"})
JOB_ENDS = frozenset({"job.succeeded.v1", "job.failed.v1", "job.cancelled.v1"})

CONSUMED_EVENTS: dict[str, frozenset[str]] = {
    "access": frozenset(),
    "admission": ACCESS_FACTS
    | JOB_ENDS
    | {"job.attempt-failed.v1", "job.resized.v1", "node.joined.v1", "node.lost.v1"},
    "priority": ACCESS_FACTS
    | JOB_ENDS
    | {
        "job.admitted.v1",
        "job.enqueued.v1",
        "job.placed.v1",
        "job.started.v1",
        "job.preempted.v1",
        "job.migrated.v1",
        "job.resized.v1",
        "job.requeued.v1",
        "job.attempt-failed.v1",
        "node.joined.v1",
        "node.lost.v1",
    },
    "placement": ACCESS_FACTS
    | {
        "job.admitted.v1",
        "job.readmitted.v1",
        "job.cancel-requested.v1",
        "queue.ranked.v1",
        "fault.suspected.v1",
        "fault.cleared.v1",
        "fault.dismissed.v1",
    },
    "failslow": ACCESS_FACTS
    | JOB_ENDS
    | {
        "job.placed.v1",
        "job.preempted.v1",
        "job.stop-requested.v1",
        "job.requeued.v1",
        "job.attempt-failed.v1",
        "job.start-failed.v1",
        "job.migrated.v1",
        "job.resized.v1",
    },
    "throttle": ACCESS_FACTS | {"endpoint.configured.v1", "key.created.v1", "key.revoked.v1"},
}
"""Events of other ledgers that a service reacts to: all else is passed over without decoding.
Grep an event's wire name here and you see who reacts to it."""

CUSTODIAN: dict[str, str] = {
    "access.commands": "access",
    "commands": "admission",
    "reports": "placement",
    "llm.requests": "throttle",
}
"""Who says `InputRejected` of a record that nobody can decode."""


WRITER: dict[str, str] = {
    **{ledger: ledger for ledger in LEDGERS},
    "access.commands": "gateway",
    "commands": "gateway",
    "llm.requests": "gateway",
    "reports": "executor",
    "heartbeats": "executor",
    "telemetry": "executor",
    "logs": "executor",
    "events": "publisher",
    "dead": "publisher",
}
"""The one service that may append to each topic: a record says nothing else of its author."""

READS: dict[str, tuple[str, ...]] = {
    "placement": ("heartbeats",),
    "failslow": ("telemetry",),
    "executor": ("access", "placement"),
    "publisher": (*LEDGERS, *CUSTODIAN, "events"),
    "projector": LEDGERS,
    "gateway": ("access", "logs", "events"),
}
"""What a service reads beside its `INPUTS`, its own ledger and, where it decides, `access`. The
publisher looks at the end of what it wrote, and fetches the bytes of dead letters."""

SUBMISSIONS_READER = "gateway"
"""Who takes the jobs from every `submissions.<tenant>`."""
EVENTS_WRITER = "publisher"
"""Who writes every `events.<tenant>`."""


def submissions(tenant: str) -> TopicSpec:
    """Where a tenant publishes its jobs: the right to write it is the tenant's identity."""
    return TopicSpec(f"submissions.{tenant}", "ledgered", 7 * DAY_MS, True)


def tenant_events(tenant: str) -> TopicSpec:
    """Where a tenant reads what happened to its jobs."""
    return TopicSpec(f"events.{tenant}", "public", 30 * DAY_MS, False)
