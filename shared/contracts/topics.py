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


LEDGERS: tuple[str, ...] = (
    "access",
    "admission",
    "priority",
    "placement",
    "failslow",
    "throttle",
)

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

CUSTODIAN: dict[str, str] = {
    "access.commands": "access",
    "commands": "admission",
    "reports": "placement",
    "llm.requests": "throttle",
}
"""Who says `InputRejected` of a record that nobody can decode."""


def submissions(tenant: str) -> TopicSpec:
    """Where a tenant publishes its jobs: the right to write it is the tenant's identity."""
    return TopicSpec(f"submissions.{tenant}", "ledgered", 7 * DAY_MS, True)


def tenant_events(tenant: str) -> TopicSpec:
    """Where a tenant reads what happened to its jobs."""
    return TopicSpec(f"events.{tenant}", "public", 30 * DAY_MS, False)
