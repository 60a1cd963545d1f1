"""One record of a `submissions.<tenant>` topic becomes exactly one command: pure, total."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from services.gateway.core.field_errors import InvalidBody, NotJson
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
from shared.contracts.jobs import CancelJob, RejectSubmission, SubmitJob
from shared.ledger.cloudevents import CloudEvent, Malformed, decode

LIMIT_BYTES = 64 * 1024
PREFIX = "submissions."
SUBMIT = frozenset({"job.submit", SubmitJob.TYPE})
CANCEL = frozenset({"job.cancel", CancelJob.TYPE})


@dataclass(frozen=True, slots=True)
class SubmissionRecord:
    """A record as it lies in the topic."""

    topic: str
    partition: int
    offset: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class RoutedCommand:
    """A command, and the lane it goes to; the same record always makes the same parcel."""

    id: str
    command: SubmitJob | CancelJob | RejectSubmission
    lane: int
    subject: str
    pool: str
    traceparent: str


def route_submission(
    arrived: SubmissionRecord, sender: Sender, pools: Mapping[str, int], active: bool
) -> RoutedCommand:
    """Whatever the record holds; what is no wish is a RejectSubmission, with its reason."""
    id = derive_command_id(arrived.topic, arrived.partition, arrived.offset)
    try:
        if not active:
            raise Malformed("tenant: is not registered, or retired")
        event = _opened(arrived)
        return _granted(id, event, sender, pools)
    except (Malformed, NotJson, InvalidBody, TenantMismatch) as error:
        return _rejected(id, arrived, sender, pools, str(error))


def _opened(arrived: SubmissionRecord) -> CloudEvent:
    if arrived.value is not None and len(arrived.value) > LIMIT_BYTES:
        raise Malformed(f"{len(arrived.value)} bytes, at most {LIMIT_BYTES} are read")
    return decode(arrived.value)


def _granted(id: str, event: CloudEvent, sender: Sender, pools: Mapping[str, int]) -> RoutedCommand:
    if event.tenant and event.tenant != sender.tenant:
        raise TenantMismatch(event.tenant)
    if event.type in SUBMIT:
        submit = submit_job(
            parse_submission(parse_object(event.body)), sender, pools, key=_key(event.id)
        )
        lane = pools[submit.pool]
        return RoutedCommand(id, submit, lane, submit.job_id, submit.pool, event.traceparent)
    if event.type in CANCEL:
        body = parse_body(CancelBody, parse_object(event.body))
        pool = resolve_pool(body.pool, sender, pools)
        cancel = cancel_job(body, sender)
        return RoutedCommand(id, cancel, pools[pool], cancel.job_id, pool, event.traceparent)
    raise Malformed("type: is neither job.submit.v1 nor job.cancel.v1")


def _key(event_id: str) -> str:
    """The CloudEvent's id serves as the key where none is given; a long one by its digest."""
    if "\x00" in event_id:
        raise Malformed("id: may not hold a NUL character")
    return event_id if len(event_id) <= 128 else hashlib.sha256(event_id.encode()).hexdigest()


def _rejected(
    id: str, arrived: SubmissionRecord, sender: Sender, pools: Mapping[str, int], reason: str
) -> RoutedCommand:
    command = RejectSubmission(
        tenant=sender.tenant,
        topic=arrived.topic,
        partition=arrived.partition,
        offset=arrived.offset,
        reason=reason[:2048],
        sha256=hashlib.sha256(arrived.value or b"").hexdigest(),
    )
    pool = sender.default_pool
    return RoutedCommand(id, command, pools.get(pool, 0), arrived.topic, pool, "")
