"""The latest order of a lane replaces the one before."""

from __future__ import annotations

from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.reranking import QueueReranked
from shared.projections.queue import QueueRankRow, fold_order, fold_rank
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


def test_changes_to_an_order_lead_to_the_row_of_the_whole_order() -> None:
    a, b, c = (Ranked(job_id=name, score=score) for name, score in (("a", 3), ("b", 2), ("c", 1)))
    whole = QueueRanked(base_policy="sjf", ranked=(a, b), waiting=2, terms={"x": 1.0, "y": 2.0})
    changed = b.model_copy(update={"score": 5.0})
    changes = QueueReranked(
        number=1,
        ranked=(changed, c),
        places=(0, 1),
        left_ranked=("a",),
        waiting=2,
        terms={"y": 0.5},
        left_terms=("x",),
    )
    after = QueueRanked(base_policy="sjf", ranked=(changed, c), waiting=2, terms={"y": 0.5})
    row, expected = QueueRankRow("0", 0), QueueRankRow("0", 0)
    fold_order(row, ledger_event("priority", whole))
    fold_order(row, ledger_event("priority", changes, seq=2, at=AT + 1))
    fold_order(expected, ledger_event("priority", after, seq=2, at=AT + 1))
    assert row == expected
