"""`queue_rank`: the latest order of priority, one row per lane; the view `queue` joins the jobs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shared.contracts.ranked_jobs import insert_at
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


def fold_order(row: QueueRankRow, event: LedgerEvent) -> None:
    if event.type == "queue.reranked.v1":
        fold_changes(row, event)
    else:
        fold_rank(row, event)


def fold_rank(row: QueueRankRow, event: LedgerEvent) -> None:
    data = event.data
    row.base_policy, row.model_sha256 = data["base_policy"], data.get("model_sha256", "")
    row.learned, row.runtime = data.get("learned", ""), data.get("runtime", "none")
    row.waiting, row.at = data.get("waiting", 0), event.at
    row.ranked = msgspec.json.encode(data["ranked"]).decode()
    row.terms = msgspec.json.encode(data.get("terms", {})).decode()


def fold_changes(row: QueueRankRow, event: LedgerEvent) -> None:
    """Apply the changes of a ranking to the order of the row."""
    data = event.data
    changed = data.get("ranked", [])
    dropped = {*data.get("left_ranked", []), *(job["job_id"] for job in changed)}
    order = [job for job in msgspec.json.decode(row.ranked) if job["job_id"] not in dropped]
    insert_at(order, changed, data.get("places", []))
    terms = msgspec.json.decode(row.terms) | data.get("terms", {})
    for name in data.get("left_terms", []):
        terms.pop(name, None)
    row.waiting, row.at = data.get("waiting", 0), event.at
    row.ranked = msgspec.json.encode(order).decode()
    row.terms = msgspec.json.encode(terms).decode()
