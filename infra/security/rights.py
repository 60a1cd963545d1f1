"""Rights of users on the broker: one table, derived from the contracts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from shared.contracts.topics import (
    ANSWERS_WRITER,
    CUSTODIAN,
    EVENTS_WRITER,
    INPUTS,
    LEDGERS,
    MARKS,
    READS,
    REQUESTS_READER,
    SUBMISSIONS_READER,
    SUBMISSIONS_WRITER,
    SUBMITS,
    WRITER,
    submissions,
    tenant_answers,
    tenant_events,
    tenant_requests,
)

Kind = Literal["topic", "group", "cluster"]
Operation = Literal[
    "read", "write", "create", "delete", "alter", "describe", "describe_configs", "alter_configs"
]

SUBMISSIONS, EVENTS = submissions("").name, tenant_events("").name
REQUESTS, ANSWERS = tenant_requests("").name, tenant_answers("").name
"""Prefixes of the tenants' topics."""
ANY = "*"
CLUSTER = "kafka-cluster"
TENANT, SITE = "tenant.", "site."
"""Prefixes of users: of tenants, and of the site. Users of the site, such as a monitor, and their
ACLs are neither created nor removed here."""
ADMIN, OPERATOR, VERIFY = "admin", "operator", "verify"
SUPERUSER = "broker"
"""User of the broker's certificate, with which topics and rights are set; ACLs do not bind it."""
RESTORE, TRIM = "restore", "trim"
"""Users that exist for one run of a command."""


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A right of a user: an operation on resources of a name or prefix."""

    user: str
    operation: Operation
    kind: Kind
    name: str
    prefixed: bool = False


def services() -> tuple[str, ...]:
    """Return the services that use the broker; each is a user of that name."""
    return tuple(dict.fromkeys((*LEDGERS, *WRITER.values(), *READS)))


def users() -> tuple[str, ...]:
    """Return the users with a password file: services and the installation's own."""
    return (*services(), ADMIN, OPERATOR, VERIFY)


def table() -> frozenset[Grant]:
    """Return all grants except those of tenants."""
    rows = (row for service in services() for row in _service(service))
    return frozenset((*rows, *_admin(), *_operator(), *_verify()))


def of_tenant(tenant: str) -> frozenset[Grant]:
    """Return the grants of a tenant: publish jobs and LLM requests, read its events and answers, in
    groups named `<tenant>/...`. A slash cannot be part of another tenant's name."""
    user = TENANT + tenant
    return frozenset(
        {
            Grant(user, "write", "topic", submissions(tenant).name),
            Grant(user, "write", "topic", tenant_requests(tenant).name),
            Grant(user, "read", "topic", tenant_events(tenant).name),
            Grant(user, "read", "topic", tenant_answers(tenant).name),
            Grant(user, "read", "group", f"{tenant}/", prefixed=True),
        }
    )


def group_of(service: str) -> str:
    """Return the consumer group of a service, as used by `shared.bus.hosting.faust_host`."""
    return f"berth-{service}"


def _service(service: str) -> Iterator[Grant]:
    reads = {*READS.get(service, ()), *INPUTS.get(service, ())}
    if service in LEDGERS:
        reads |= {service, "access"}
    yield from (Grant(service, "read", "topic", topic) for topic in reads)
    writes = {topic for topic, writer in WRITER.items() if writer == service}
    writes |= {*MARKS.get(service, ()), *SUBMITS.get(service, ())}
    yield from (Grant(service, "write", "topic", topic) for topic in writes)
    if service == SUBMISSIONS_READER:
        yield Grant(service, "read", "topic", SUBMISSIONS, prefixed=True)
    if service == SUBMISSIONS_WRITER:
        yield Grant(service, "write", "topic", SUBMISSIONS, prefixed=True)
    if service == REQUESTS_READER:
        yield Grant(service, "read", "topic", REQUESTS, prefixed=True)
    if service == EVENTS_WRITER:
        # It publishes the bytes of records that the gateway could not read.
        yield Grant(service, "read", "topic", SUBMISSIONS, prefixed=True)
        yield Grant(service, "read", "topic", REQUESTS, prefixed=True)
        yield Grant(service, "write", "topic", EVENTS, prefixed=True)
    if service == ANSWERS_WRITER:
        yield Grant(service, "write", "topic", ANSWERS, prefixed=True)
    if service in LEDGERS or service == SUBMISSIONS_READER:
        yield Grant(service, "read", "group", group_of(service))


def _admin() -> Iterator[Grant]:
    """Yield the grants of `admin`: topics, users and ACLs, no records."""
    yield Grant(ADMIN, "alter", "cluster", CLUSTER)
    for operation in ("create", "describe", "describe_configs", "alter_configs"):
        yield Grant(ADMIN, operation, "topic", ANY)
    # No ledger is ever deleted; a tenant's topics are, once it is gone.
    for prefix in (SUBMISSIONS, REQUESTS, EVENTS, ANSWERS):
        yield Grant(ADMIN, "delete", "topic", prefix, prefixed=True)
    yield Grant(ADMIN, "describe", "group", ANY)


def _operator() -> Iterator[Grant]:
    """Yield the grants of `operator`: the first key, retried dead letters, replayed workloads."""
    yield Grant(OPERATOR, "read", "topic", ANY)
    yield from (Grant(OPERATOR, "write", "topic", topic) for topic in CUSTODIAN)
    yield Grant(OPERATOR, "write", "topic", SUBMISSIONS, prefixed=True)
    yield Grant(OPERATOR, "describe", "group", ANY)


def _verify() -> Iterator[Grant]:
    yield Grant(VERIFY, "read", "topic", ANY)
