"""The ranks of an order that are of use depend on the jobs that wait and run as it comes."""

from __future__ import annotations

from services.placement.core.pool.ranks import NamedOrder, Ranks, named_order
from shared.contracts.placement import RanksChanged, RanksNoted
from shared.contracts.ranking import Ranked

WAITS = Ranked(job_id="waits", score=3.0, run_s=60.0)
RUNS = Ranked(job_id="runs", score=2.0, gittins_s=9.0)


def order() -> NamedOrder:
    return named_order(
        RanksNoted(base_policy="srsf", ranked_at=1, ranked=(WAITS,), running=(RUNS,))
    )


def test_ranks_of_waiting_and_unknown_jobs_and_of_holders_are_of_use() -> None:
    every = Ranks(5, "srsf", "", {"waits": 3.0, "runs": 2.0}, {"runs": 9.0}, {"waits": 60.0})
    assert order().of_use(5, {"waits"}, {"waits", "runs"}, {"runs"}) == every
    assert order().of_use(5, (), (), {"runs"}) == every
    assert order().of_use(5, (), {"waits", "runs"}, ()) == Ranks(5, "srsf")


def test_changes_replace_values_and_a_job_may_go_from_one_list_to_the_other() -> None:
    named = order()
    started = Ranked(job_id="waits", score=4.0)
    named.apply(RanksChanged(number=1, ranked_at=2, left_ranked=("waits",), running=(started,)))
    assert (named.number, named.waiting, list(named.running)) == (1, {}, ["runs", "waits"])
