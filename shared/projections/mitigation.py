"""`mitigation`: the breaker of automatic mitigation and the strictness of suspicions, by lane."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent, NotFolded
from shared.projections.table import RowTable


@dataclass(slots=True)
class MitigationRow:
    """One pool; the counts of nodes are those at the last change of the breaker."""

    lane: str
    partition: int
    is_open: bool = False
    plan_id: str = ""
    nodes: int = 0
    out_of_use: int = 0
    most: int = 0
    worker_strictness: float = 1.0
    job_strictness: float = 1.0


MITIGATION = RowTable("mitigation", MitigationRow, "lane")


def fold_mitigation(row: MitigationRow, event: LedgerEvent) -> None:
    data = event.data
    match event.type:
        case "mitigation.breaker.v1":
            row.is_open, row.plan_id = data["is_open"], data.get("plan_id", "")
            row.nodes, row.out_of_use, row.most = data["nodes"], data["out_of_use"], data["most"]
        case "thresholds.adjusted.v1" if data["kind"] == "worker":
            row.worker_strictness = data["strictness"]
        case "thresholds.adjusted.v1":
            row.job_strictness = data["strictness"]
        case _:
            raise NotFolded(event.type)
