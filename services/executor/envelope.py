"""The CloudEvent in which an executor sends a message."""

from __future__ import annotations

from typing import TypeAlias
from uuid import uuid4

from shared.bus.clock import now_ms
from shared.contracts.codec import encode
from shared.contracts.node_problems import NodeProblemsReported
from shared.contracts.reports import (
    CheckpointsReported,
    ExecutorReported,
    Heartbeats,
    LogLines,
    ProgressReported,
    TelemetryReported,
)
from shared.ledger import cloudevents

ExecutorMessage: TypeAlias = (
    ExecutorReported
    | CheckpointsReported
    | ProgressReported
    | NodeProblemsReported
    | Heartbeats
    | LogLines
    | TelemetryReported
)


def wrap_message(
    executor_id: str, message: ExecutorMessage, *, pool: str = "", tenant: str = ""
) -> bytes:
    """Return a record with an id of its own; send the same bytes again to repeat the message."""
    return cloudevents.encode(
        id=uuid4().hex,
        source=f"/berth/executor/{executor_id}",
        type=message.TYPE,
        data=encode(message),
        at_ms=now_ms(),
        pool=pool,
        tenant=tenant,
    )
