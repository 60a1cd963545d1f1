"""State changes in accepted records, and the webhooks that each of them is sent to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from shared.contracts.registry import AccessView
from shared.contracts.state_changes import STATE_CHANGES, StateChange
from shared.contracts.upcast import upcast
from shared.contracts.webhooks import WebhookCreated, WebhookTested
from shared.ledger.publication import encode_public
from shared.ledger.reader import Accepted, RawFact

SPECIFYING = frozenset({"job.admitted.v1", "job.deferred.v1", "array.accepted.v1"})
"""Events that hold the specification of a job."""
RELEVANT = {*STATE_CHANGES, *SPECIFYING, WebhookTested.TYPE}


class Fields(msgspec.Struct):
    """The fields of an event by which it finds its receivers."""

    tenant: str = ""
    job_id: str = ""
    name: str = ""
    transferred_to: dict[str, object] | None = None
    """The pool in which the job goes on, if it left this one."""


class Change(NamedTuple):
    """An event that some receiver may get; `state_change` is None for one that is none."""

    event_id: str
    ledger: str
    kind: str
    state_change: StateChange | None
    fields: Fields
    at_ms: int
    pool: str
    data: bytes
    subject: str
    traceparent: str


class Notification(NamedTuple):
    """A text on its way: `target` is a webhook's name, or `mail:` and a user."""

    tenant: str
    target: str
    created_at: int
    event_id: str
    at_ms: int
    body: str


_fields = msgspec.json.Decoder(Fields)


def changes_of(accepted: Accepted, pool: str) -> Iterator[Change]:
    """Yield the events of a record that may concern a receiver; `pool` is that of its lane."""
    for raw in accepted.raw():
        if raw.type in RELEVANT:
            yield _change(accepted, raw, pool)


def webhooks_for(change: Change, view: AccessView) -> list[WebhookCreated]:
    """Return the webhooks of the event's own tenant that it is sent to."""
    if change.fields.transferred_to:
        return []
    hooks = view.webhooks.of(change.fields.tenant)
    if change.kind == WebhookTested.TYPE:
        hook = hooks.get(change.fields.name)
        return [hook] if hook is not None else []
    return [
        hook
        for hook in hooks.values()
        if change.state_change in hook.events
        and (not hook.pools or change.pool in hook.pools)
        and change.at_ms >= hook.created_at
    ]


def to_webhook(change: Change, hook: WebhookCreated, base_url: str) -> Notification:
    body = encode_public(
        id=change.event_id,
        ledger=change.ledger,
        kind=change.kind,
        data=change.data,
        at_ms=change.at_ms,
        subject=change.subject,
        traceparent=change.traceparent,
        tenant=change.fields.tenant,
        pool=change.pool,
        link=job_url(base_url, change.fields.job_id),
    )
    return Notification(
        hook.tenant, hook.name, hook.created_at, change.event_id, change.at_ms, body.decode()
    )


def job_url(base_url: str, job_id: str) -> str:
    """Return the address of a job in the REST API; empty where the installation has none."""
    return f"{base_url.rstrip('/')}/v1/jobs/{job_id}" if base_url and job_id else ""


def pool_of_lane(view: AccessView, lane: int) -> str:
    """Return the pool of a lane, which never changes."""
    present = (name for name, pool in view.pools.items() if pool.partition == lane)
    former = (name for name, former_lane in view.former_lanes.items() if former_lane == lane)
    return next(present, next(former, ""))


def _change(accepted: Accepted, raw: RawFact, lane_pool: str) -> Change:
    kind, data = upcast(raw.type, raw.data)
    fields = _fields.decode(data)
    return Change(
        accepted.fact_id(raw.index),
        accepted.ledger,
        kind,
        STATE_CHANGES.get(kind),
        fields,
        raw.at,
        lane_pool if fields.job_id else "",
        data,
        raw.subject,
        raw.traceparent,
    )
