"""`queue_rank`: the latest order of priority, one row per lane; the view `queue` joins the jobs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import BigInt, RowTable


@dataclass(slots=True)
class QueueRankRow:
    """The order of one lane's queue; `at` in ms, `ranked` and `terms` as JSON."""

    lane: str
    partition: int
    base_policy: str = ""
    model_sha256: str = ""
    waiting: int = 0
    ranked: str = "[]"
    terms: str = "{}"
    at: BigInt = 0
    learned: str = ""
    runtime: str = "none"


QUEUE_RANK = RowTable("queue_rank", QueueRankRow, "lane")


def fold_rank(row: QueueRankRow, event: LedgerEvent) -> None:
    data = event.data
    row.base_policy, row.model_sha256 = data["base_policy"], data.get("model_sha256", "")
    row.learned, row.runtime = data.get("learned", ""), data.get("runtime", "none")
    row.waiting, row.at = data.get("waiting", 0), event.at
    row.ranked = msgspec.json.encode(data["ranked"]).decode()
    row.terms = msgspec.json.encode(data.get("terms", {})).decode()
