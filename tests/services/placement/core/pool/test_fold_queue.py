from __future__ import annotations

import pytest

from services.placement.core.pool.fold_queue import BACKOFF_MOST_MS, end_round, requeue
from shared.contracts.attempts import JobRequeued
from shared.contracts.placement import RoundEnded
from shared.ledger.decider import Fact
from tests.services.placement.core.lane import Lane, job, lane


def pool_with_a_waiting_job() -> Lane:
    pool = lane()
    pool.submit(job("a", 1))
    return pool


@pytest.mark.parametrize(("failures", "backoff_ms"), [(1, 500), (2, 1000), (8, BACKOFF_MOST_MS)])
def test_each_failed_start_doubles_the_backoff(failures: int, backoff_ms: int) -> None:
    pool = pool_with_a_waiting_job()
    pool.state.leave(pool.job("a"))
    pool.job("a").start_failures = failures
    event = JobRequeued(job_id="a", tenant="t", attempt=2, reason="start_failed")
    requeue(pool.state, event, Fact(event, "placement", 0, 9, 0, 5000, "", ""))
    assert pool.job("a").not_before == 5000 + backoff_ms
    assert pool.job("a").attempt == 2


def test_a_round_passes_over_all_jobs_that_still_wait() -> None:
    pool = pool_with_a_waiting_job()
    state = pool.state
    event = RoundEnded(pool="p", waiting=1, unfinished=False, again_at=77)
    end_round(state, event, Fact(event, "placement", 0, 9, 0, 6000, "", ""))
    assert (state.unscanned, state.changed, state.again_at) == (0, False, 77)
    assert state.unreported == {} and state.round_at == 6000


def test_a_reservation_without_victims_left_is_dropped() -> None:
    pool = pool_with_a_waiting_job()
    pool.state.reservations["a"] = {"gone": None}
    event = RoundEnded(pool="p", waiting=1)
    end_round(pool.state, event, Fact(event, "placement", 0, 9, 0, 6000, "", ""))
    assert pool.state.reservations == {}
