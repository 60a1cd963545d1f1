"""`queue_rank`: the order that priority last advised, one row per lane; `queue` joins the jobs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import RowTable


@dataclass(slots=True)
class QueueRank:
    lane: str
    partition: int
    base_policy: str = ""
    model_sha256: str = ""
    waiting: int = 0
    ranked: str = "[]"
    terms: str = "{}"
    at: int = 0
    learned: str = ""
    runtime: str = "none"


RANK = RowTable(
    "queue_rank",
    QueueRank,
    "lane",
    {
        "lane": "text",
        "partition": "int",
        "base_policy": "text",
        "model_sha256": "text",
        "waiting": "int",
        "ranked": "text",
        "terms": "text",
        "at": "bigint",
        "learned": "text",
        "runtime": "text",
    },
)


def fold_rank(row: QueueRank, line: LedgerEvent) -> None:
    data = line.data
    row.base_policy, row.model_sha256 = data["base_policy"], data.get("model_sha256", "")
    row.learned, row.runtime = data.get("learned", ""), data.get("runtime", "none")
    row.waiting, row.at = data.get("waiting", 0), line.at
    row.ranked = msgspec.json.encode(data["ranked"]).decode()
    row.terms = msgspec.json.encode(data.get("terms", {})).decode()
