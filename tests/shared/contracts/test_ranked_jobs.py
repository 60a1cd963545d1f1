from __future__ import annotations

from shared.contracts.ranked_jobs import JobRank, apply_changes, insert_at, ranks_of
from shared.contracts.ranking import Ranked


def test_changed_values_replace_the_old_ones_and_jobs_that_left_are_dropped() -> None:
    ranks = ranks_of([Ranked(job_id="a", score=3), Ranked(job_id="b", score=2, run_s=9.0)])
    apply_changes(ranks, [Ranked(job_id="a", score=1, gittins_s=5.0)], ["b"])
    assert ranks == {"a": JobRank(1, 5.0, None)}


def test_jobs_are_inserted_at_their_places_in_the_new_order() -> None:
    order = ["a", "b", "c"]
    insert_at(order, ["first", "middle", "last"], (0, 2, 5))
    assert order == ["first", "a", "middle", "b", "c", "last"]
