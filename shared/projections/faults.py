"""`fault`: every suspicion of a slow worker, and its end."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent, NotFolded
from shared.projections.table import BigInt, RowTable


@dataclass(slots=True)
class FaultRow:
    """One suspicion; times in ms, 0 = not yet."""

    fault_id: str
    partition: int
    job_id: str = ""
    tenant: str = ""
    node_id: str = ""
    allocation_id: str = ""
    slowdown: float = 1.0
    score: float = 0.0
    state: str = "suspected"
    reason: str = ""
    suspected_at: BigInt = 0
    closed_at: BigInt = 0
    cause: str = "unknown"
    part: str = ""
    lost_gpu_s: float = 0.0
    """Cluster s times GPUs that the gang lost, with the last of its faults that closed."""
    cost_gpu_s: float = 0.0
    """Of the migration that helped it, measured."""
    avoided_gpu_s: float = 0.0
    """That this migration spared the gang, estimated."""


FAULT = RowTable("fault", FaultRow, "fault_id")


def fold_fault(row: FaultRow, event: LedgerEvent) -> None:
    data = event.data
    match event.type:
        case "fault.suspected.v1":
            row.job_id, row.tenant = data["job_id"], data.get("tenant", "")
            row.node_id, row.allocation_id = data["node_id"], data["allocation_id"]
            row.slowdown, row.score = data["slowdown"], data["score"]
            row.state, row.suspected_at = "suspected", event.at
            row.cause, row.part = data.get("cause", "unknown"), data.get("part", "")
        case "fault.cleared.v1":
            _close(row, event, "cleared")
        case "fault.dismissed.v1":
            _close(row, event, "false_alarm" if data.get("false_alarm") else "dismissed")
        case "mitigation.accounted.v1":
            row.cost_gpu_s += data["cost_s"] * data["gpus"]
            row.avoided_gpu_s += data["avoided_s"] * data["gpus"]
        case _:
            raise NotFolded(event.type)


def _close(row: FaultRow, event: LedgerEvent, state: str) -> None:
    row.state, row.closed_at, row.reason = state, event.at, event.data.get("reason", "")
    row.lost_gpu_s += event.data.get("lost_gpu_s", 0.0)
