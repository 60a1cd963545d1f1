"""`fault`: every suspicion of a slow worker and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import RowTable


@dataclass(slots=True)
class Fault:
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
    suspected_at: int = 0
    closed_at: int = 0


FAULT = RowTable(
    "fault",
    Fault,
    "fault_id",
    {
        "fault_id": "text",
        "partition": "int",
        "job_id": "text",
        "tenant": "text",
        "node_id": "text",
        "allocation_id": "text",
        "slowdown": "float8",
        "score": "float8",
        "state": "text",
        "reason": "text",
        "suspected_at": "bigint",
        "closed_at": "bigint",
    },
)


def fold_fault(row: Fault, line: LedgerEvent) -> None:
    data = line.data
    if line.type == "fault.suspected.v1":
        for name in ("job_id", "node_id", "allocation_id", "slowdown", "score"):
            setattr(row, name, data[name])
        row.tenant, row.suspected_at, row.state = data.get("tenant", ""), line.at, "suspected"
        return
    row.closed_at, row.reason = line.at, data.get("reason", "")
    row.state = "cleared" if line.type == "fault.cleared.v1" else "dismissed"
    if data.get("false_alarm"):
        row.state = "false_alarm"
