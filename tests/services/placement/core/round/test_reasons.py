from __future__ import annotations

from services.placement.core.pool.trial import Trial
from services.placement.core.round.plan import Plan
from services.placement.core.round.reasons import HoldReasons, PassedOver, unreported_jobs
from services.placement.core.round.view import View, scan_of, view_of
from shared.contracts.nodes import CordonNode
from tests.services.placement.core.lane import Lane, job, lane


def passed_over(view: View, *first: str) -> PassedOver:
    return PassedOver(scan_of(view), [view.waiting[name] for name in first], [], set(), None)


def reason(pool: Lane, job_id: str) -> str:
    view = view_of(pool.state, pool.now)
    with Trial(view.board) as trial:
        return HoldReasons(view, trial, passed_over(view)).of(pool.job(job_id))


def test_the_reason_tells_a_full_pool_from_one_that_could_never_hold_the_job() -> None:
    pool = lane("a")
    pool.run(job("x", 8))
    pool.submit(job("w", 8), job("huge", 9))
    assert (reason(pool, "w"), reason(pool, "huge")) == ("no_capacity", "no_node_fits")
    pool.command(CordonNode(node_id="a", reason="check"))
    assert reason(pool, "w") == "draining"


def test_the_detail_counts_workers_and_free_gpus() -> None:
    pool = lane("a")
    pool.run(job("x", 6))
    pool.submit(job("w", 2, workers=3))
    view = view_of(pool.state, pool.now)
    with Trial(view.board) as trial:
        hold = HoldReasons(view, trial, passed_over(view)).make_hold(pool.job("w"), "no_capacity")
    assert hold.short_gpus == 4
    assert hold.detail == {
        "position": 0.0,
        "waiting": 1.0,
        "workers": 3.0,
        "workers_that_fit": 1.0,
        "free_gpus": 2.0,
    }


def test_reasons_that_may_differ_are_checked_behind_the_first_jobs() -> None:
    pool = lane()
    pool.submit(*(job(name, 1) for name in "abc"))
    view = view_of(pool.state, pool.now)
    pool.state.unreported.update(dict.fromkeys("abc"))
    names = [waiting.job_id for waiting in unreported_jobs(view, Plan(), passed_over(view, "b"))]
    assert names == ["a", "c"]
