"""Makes the events of ledgers that projections and rules read, from plain messages."""

from __future__ import annotations

from typing import Any

import msgspec

from shared.contracts.base import Event
from shared.contracts.codec import encode_event
from shared.contracts.nodes import NodeJoined
from shared.projections.ledger_events import LedgerEvent

AT = 1_700_000_000_000


def ledger_event(
    ledger: str,
    message: Event,
    *,
    seq: int = 1,
    index: int = 0,
    partition: int = 0,
    at: int = AT,
    traceparent: str = "",
) -> LedgerEvent:
    raw = encode_event(message)
    return LedgerEvent(
        ledger=ledger,
        partition=partition,
        seq=seq,
        index=index,
        at=at,
        type=message.TYPE,
        subject=message.subject,
        data=msgspec.json.decode(raw),
        raw=raw,
        cause="",
        traceparent=traceparent,
    )


def node_joined(node_id: str = "n1", **fields: Any) -> NodeJoined:
    """Return the event of a virtual node with eight A100 GPUs; `fields` replace what it says."""
    given: dict[str, Any] = {
        "incarnation": "i",
        "executor_id": "e",
        "backend": "virtual",
        "gpu_type": "a100",
        "gpus": 8,
        "cpus": 8,
        "mem_gib": 64,
        **fields,
    }
    return NodeJoined(node_id=node_id, **given)
