"""Every topic, its writer, its readers, and the service that rejects its undecodable records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["ledger", "ledgered", "soft", "public"]

DAY_MS = 86_400_000
PROMPTS_KEPT_H = 24.0
"""Hours for which prompts and answers are kept in topics, and answers in files, by default."""
LANES = 4
"""Partitions of the topics of pools, in an installation whose settings name no number."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """Settings of a topic: `retention_ms` -1 is unlimited, `flush` syncs each record to disk.

    `holds_prompts`: its records hold prompts or answers, so that the installation's setting
    `prompts_kept_h` is its retention, and `retention_ms` that of the default.
    """

    name: str
    kind: Kind
    retention_ms: int
    flush: bool
    single_partition: bool = False
    holds_prompts: bool = False


LEDGERS: tuple[str, ...] = ("access", "admission", "priority", "placement", "failslow", "throttle")

TOPICS: dict[str, TopicSpec] = {
    spec.name: spec
    for spec in (
        *(TopicSpec(name, "ledger", -1, True, name == "access") for name in LEDGERS),
        TopicSpec("access.commands", "ledgered", -1, True, single_partition=True),
        TopicSpec("commands", "ledgered", -1, True),
        TopicSpec("reports", "ledgered", -1, True),
        TopicSpec("llm.requests", "ledgered", DAY_MS, True, holds_prompts=True),
        TopicSpec("heartbeats", "soft", DAY_MS, True),
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
"""Inputs of each decider that its records name in their input vector."""

LOSSY_INPUTS = frozenset(
    topic for topics in INPUTS.values() for topic in topics if TOPICS[topic].retention_ms >= 0
)
"""Inputs of which the broker removes records, whether they were read or not."""

ARCHIVED = tuple(
    spec.name
    for spec in TOPICS.values()
    if spec.kind in ("ledger", "ledgered") and spec.retention_ms < 0
)
"""Topics of which no record is ever lost: an archive takes over their beginning."""

ACCESS_FACTS = frozenset(
    {"pool.configured.v1", "tenant.registered.v1", "tenant.retired.v1", "input.retry-requested.v1"}
)
JOB_ENDS = frozenset({"job.succeeded.v1", "job.failed.v1", "job.cancelled.v1"})

CONSUMED_EVENTS: dict[str, frozenset[str]] = {
    "access": frozenset(),
    "admission": ACCESS_FACTS
    | JOB_ENDS
    | {
        "pool.deleted.v1",
        "user.deleted.v1",
        "user.registered.v1",
        "job.attempt-failed.v1",
        "job.resized.v1",
        "node.joined.v1",
        "node.lost.v1",
    },
    "priority": JOB_ENDS
    | {
        "pool.configured.v1",
        "tenant.registered.v1",
        "job.admitted.v1",
        "job.enqueued.v1",
        "job.placed.v1",
        "job.started.v1",
        "job.progressed.v1",
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
        "array.accepted.v1",
        "array.ended.v1",
        "job.admitted.v1",
        "job.readmitted.v1",
        "job.cancel-requested.v1",
        "job.transfer-requested.v1",
        "queue.ranked.v1",
        "queue.reranked.v1",
        "fault.suspected.v1",
        "fault.cleared.v1",
        "fault.dismissed.v1",
        "mitigation.applied.v1",
        "mitigation.cleared.v1",
        "node.health.v1",
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
        "job.started.v1",
        "node.joined.v1",
        "node.lost.v1",
        "node.cordoned.v1",
        "node.uncordoned.v1",
        "node.problem-noted.v1",
        "mitigation.turned-down.v1",
    },
    "throttle": ACCESS_FACTS | {"endpoint.configured.v2", "endpoint.deleted.v1"},
    "executor": JOB_ENDS
    | {
        "allocation.released.v1",
        "array.ended.v1",
        "array.program-noted.v1",
        "fault.injected.v1",
        "fault.injection-ended.v1",
        "job.enqueued.v1",
        "job.migrated.v1",
        "job.placed.v1",
        "job.preempted.v1",
        "job.resized.v1",
        "job.start-failed.v1",
        "job.started.v1",
        "job.stop-requested.v1",
        "node.joined.v1",
        "node.lost.v1",
        "node.problem-noted.v1",
        "pool.configured.v1",
    },
}
"""Events of other ledgers that a decider or an executor reacts to; others are not decoded."""

CUSTODIAN: dict[str, str] = {
    "access.commands": "access",
    "commands": "admission",
    "reports": "placement",
    "llm.requests": "throttle",
}
"""The service that appends `InputRejected` for an undecodable record of a topic."""

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
"""The service that appends to each topic; records themselves name no author."""

MARKS: dict[str, tuple[str, ...]] = {"placement": ("heartbeats",)}
"""Topics of other writers to which a service appends markers, to know that it has read them."""

SUBMITS: dict[str, tuple[str, ...]] = {"failslow": ("commands",)}
"""Topics of commands to which a service beside the gateway appends: jobs that measure nodes."""

READS: dict[str, tuple[str, ...]] = {
    "placement": ("heartbeats",),
    "failslow": ("telemetry",),
    "executor": ("access", "admission", "placement"),
    "publisher": (*LEDGERS, *CUSTODIAN, "events"),
    "projector": (*LEDGERS, "logs"),
    "gateway": ("access", "admission", "logs", "events"),
    "notifier": ("access", "admission", "placement"),
}
"""Topics that a service reads beside its `INPUTS`, its own ledger and, if it decides, `access`.
The gateway reads in `admission` the spec of a job that is to be repeated, the executor why a job of
pods waits there.
The projector reads in `logs` the output of jobs, which it stores.
The publisher reads the end of `events` when it resumes, and the bytes of dead letters."""

SUBMISSIONS_READER = "gateway"
"""The service that reads every `submissions.<tenant>`."""
SUBMISSIONS_WRITER = "executor"
"""The service that writes to `submissions.<tenant>` the jobs of pods that the tenant created."""
REQUESTS_READER = "gateway"
"""The service that reads every `requests.<tenant>`."""
EVENTS_WRITER = "publisher"
"""The service that writes every `events.<tenant>`."""
ANSWERS_WRITER = "throttle"
"""The service that writes every `answers.<tenant>`."""


def submissions(tenant: str) -> TopicSpec:
    """Return the topic to which a tenant publishes jobs; the right to write is its identity."""
    return TopicSpec(f"submissions.{tenant}", "ledgered", 7 * DAY_MS, True)


def tenant_requests(tenant: str) -> TopicSpec:
    """Return the topic to which a tenant publishes LLM requests, as itself."""
    return TopicSpec(f"requests.{tenant}", "ledgered", DAY_MS, True, holds_prompts=True)


def tenant_events(tenant: str) -> TopicSpec:
    """Return the topic from which a tenant reads the events of its jobs."""
    return TopicSpec(f"events.{tenant}", "public", 30 * DAY_MS, False)


def tenant_answers(tenant: str) -> TopicSpec:
    """Return the topic from which a tenant reads the answers to its LLM requests."""
    return TopicSpec(f"answers.{tenant}", "public", DAY_MS, True, holds_prompts=True)


def tenant_topics(tenant: str) -> tuple[TopicSpec, ...]:
    """Return all topics of a tenant."""
    return (
        submissions(tenant),
        tenant_requests(tenant),
        tenant_events(tenant),
        tenant_answers(tenant),
    )
