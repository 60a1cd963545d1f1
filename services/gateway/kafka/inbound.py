"""Turns each record of a `submissions.<tenant>` topic into exactly one command: pure and total."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from dataclasses import dataclass

from services.gateway.core.field_errors import InvalidBody, NotJson
from services.gateway.core.key_bounds import NotPermitted, check_claim, check_mails
from services.gateway.core.named_pools import check_pools
from services.gateway.core.named_secrets import check_secrets
from services.gateway.core.strict import parse_body, parse_object
from services.gateway.core.submission import (
    CancelBody,
    Sender,
    TenantMismatch,
    cancel_job,
    parse_submission,
    resolve_pool,
    submit_job,
)
from shared.contracts.identity import derive_command_id
from shared.contracts.job_commands import CancelJob, RejectSubmission, SubmitJob
from shared.contracts.llm import ServeLlmRequest
from shared.contracts.pools import PoolConfigured
from shared.ledger.cloudevents import CloudEvent, Malformed, decode

LIMIT_BYTES = 64 * 1024
PREFIX = "submissions."
SUBMIT = frozenset({"job.submit", SubmitJob.TYPE})
CANCEL = frozenset({"job.cancel", CancelJob.TYPE})


@dataclass(frozen=True, slots=True)
class SubmissionRecord:
    """One record of a submissions topic, undecoded."""

    topic: str
    partition: int
    offset: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class RoutedCommand:
    """A command and its lane; the same record always gives the same command."""

    id: str
    command: SubmitJob | CancelJob | RejectSubmission | ServeLlmRequest
    lane: int
    subject: str
    pool: str
    traceparent: str
    topic: str = "commands"


def route_submission(
    record: SubmissionRecord,
    sender: Sender,
    pools: Mapping[str, int],
    active: bool,
    secrets: Container[str] | None = None,
    settings: Mapping[str, PoolConfigured] | None = None,
) -> RoutedCommand:
    """Return the command of the record; for an invalid one a RejectSubmission with the reason.

    `secrets` are those of the sender, `settings` those of all pools; None: not known.
    """
    id = derive_command_id(record.topic, record.partition, record.offset)
    try:
        if not active:
            raise Malformed("tenant: not registered or retired")
        event = decoded(record, LIMIT_BYTES)
        routed = _routed(id, event, sender, pools)
        if isinstance(routed.command, SubmitJob):
            check_pools(routed.command, settings or {})
        if isinstance(routed.command, SubmitJob) and secrets is not None:
            check_secrets(routed.command.spec.env, secrets, sender.tenant)
        return routed
    except (Malformed, NotJson, InvalidBody, NotPermitted, TenantMismatch) as error:
        return rejected(id, record, sender, pools, str(error))


def decoded(record: SubmissionRecord, limit_bytes: int) -> CloudEvent:
    """Return the record as a CloudEvent. Raises Malformed, for too many bytes too."""
    if record.value is not None and len(record.value) > limit_bytes:
        raise Malformed(f"{len(record.value)} bytes; at most {limit_bytes} are read")
    return decode(record.value)


def _routed(id: str, event: CloudEvent, sender: Sender, pools: Mapping[str, int]) -> RoutedCommand:
    if event.tenant and event.tenant != sender.tenant:
        raise TenantMismatch(event.tenant)
    if event.type in SUBMIT:
        job = parse_submission(parse_object(event.body))
        check_claim(sender, job.spec.user, "the broker knows the tenant alone")
        submit = submit_job(job, sender, pools, key=_idempotency_key(event.id))
        check_mails(submit, None, ())
        lane = pools[submit.pool]
        return RoutedCommand(id, submit, lane, submit.job_id, submit.pool, event.traceparent)
    if event.type in CANCEL:
        order = parse_body(CancelBody, parse_object(event.body))
        pool = resolve_pool(order.pool, sender, pools)
        cancel = cancel_job(order, sender)
        return RoutedCommand(id, cancel, pools[pool], cancel.job_id, pool, event.traceparent)
    raise Malformed("type: unknown; it must be job.submit.v1 or job.cancel.v1")


def _idempotency_key(event_id: str) -> str:
    """Return the CloudEvent's id as the default key; its digest if it exceeds 128 characters."""
    if "\x00" in event_id:
        raise Malformed("id: may not hold a NUL character")
    return event_id if len(event_id) <= 128 else hashlib.sha256(event_id.encode()).hexdigest()


def rejected(
    id: str, record: SubmissionRecord, sender: Sender, pools: Mapping[str, int], reason: str
) -> RoutedCommand:
    command = RejectSubmission(
        tenant=sender.tenant,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        reason=reason[:2048],
        sha256=hashlib.sha256(record.value or b"").hexdigest(),
    )
    pool = sender.default_pool
    return RoutedCommand(id, command, pools.get(pool, 0), record.topic, pool, "")
