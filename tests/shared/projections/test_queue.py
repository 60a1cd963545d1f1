"""The latest order of a lane replaces the one before."""

from __future__ import annotations

from shared.contracts.ranking import QueueRanked, Ranked
from shared.projections.queue import QueueRankRow, fold_rank
from tests.shared.ledger_events import AT, ledger_event


def test_the_latest_order_replaces_the_one_before() -> None:
    row = QueueRankRow("0", 0)
    first = QueueRanked(
        base_policy="sjf",
        runtime="history",
        learned="net",
        model_sha256="ab",
        ranked=(Ranked(job_id="a", score=1),),
        waiting=1,
        terms={"margin": 0.5},
    )
    fold_rank(row, ledger_event("priority", first))
    assert (row.base_policy, row.learned, row.model_sha256, row.runtime) == (
        "sjf",
        "net",
        "ab",
        "history",
    )
    assert (row.waiting, row.terms, row.at) == (1, '{"margin":0.5}', AT)
    second = QueueRanked(base_policy="fcfs", ranked=(Ranked(job_id="b", score=2),), waiting=3)
    fold_rank(row, ledger_event("priority", second, seq=2, at=AT + 1))
    assert row == QueueRankRow(
        "0", 0, "fcfs", "", 3, '[{"job_id":"b","score":2.0}]', "{}", AT + 1, "", "none"
    )
