"""The running jobs in order: the kept order is that which a ranking without memory makes."""

from __future__ import annotations

import pickle
from random import Random

import pytest

from services.priority.core.caches.running_order import STALE_MOST, RunningOrder, RunningPlace
from services.priority.core.ranking.stable_order import rank_running
from shared.contracts.ranking import Ranked, Started
from tests.harness.decider import AT
from tests.services.priority.core.queues import change, entry, happen, holding, queue

KEY = ("fcfs",)


def place(job_id: str, score: float, until: float = float("inf")) -> RunningPlace:
    return RunningPlace(score, job_id, Ranked(job_id=job_id, score=score), until)


def an_order(*jobs: RunningPlace) -> RunningOrder:
    order = RunningOrder()
    order.begin(KEY, AT, ())
    order.insert(jobs)
    return order


def ids(order: RunningOrder) -> list[str]:
    return [job.job_id for job in order.lowest()]


def test_the_lowest_score_is_first_and_ties_are_by_id() -> None:
    order = an_order(place("b", 1.0), place("c", 0.5), place("a", 1.0))
    assert ids(order) == ["c", "a", "b"]
    assert order.lowest() is order.lowest()


def test_marked_jobs_and_those_in_another_bin_are_taken_out() -> None:
    order = an_order(place("a", 1.0), place("b", 2.0, until=AT + 10), place("c", 3.0))
    assert order.take_stale(AT + 9) == []
    order.mark("c")
    assert order.take_stale(AT + 10) == ["c", "b"]
    assert ids(order) == ["a"]


def test_an_order_that_is_never_used_is_dropped() -> None:
    order = an_order(place("a", 1.0))
    for n in range(STALE_MOST + 1):
        order.mark(f"j{n}")
    assert order.key is None
    order.mark("a")
    assert not order.stale
    assert not order.order


def test_snapshots_do_not_hold_the_order() -> None:
    assert pickle.loads(pickle.dumps(an_order(place("a", 1.0)))).key is None


@pytest.mark.parametrize("source", ["history", "user"])
@pytest.mark.parametrize("policy", ["fcfs", "saf", "las", "gittins", "srtf", "srsf"])
def test_the_kept_order_is_that_of_a_ranking_without_memory(policy: str, source: str) -> None:
    chance = Random(f"{policy} {source}")
    names = [f"j{n:02d}" for n in range(20)]
    state = queue(
        *(entry(name, gpus=float(1 + n % 4)) for n, name in enumerate(names)),
        base_policy=policy,
        runtime=source,
        preemption="ranked",
        preemption_protection="progress",
        preempt_price=1.0,
        time_scale=60.0,
    )
    now = AT
    for _ in range(400):
        happen(chance, state, names, now)
        now += chance.choice([0, 1, 25, 700, 20_000])
        if chance.random() < 0.02:
            now -= 15_000
        fresh = pickle.loads(pickle.dumps(state))
        assert state.pool is not None
        assert rank_running(state, state.pool, now) == rank_running(fresh, state.pool, now)


@pytest.mark.parametrize("ran_ms", [1, 40, 999, 61_000, 3_000_000])
def test_a_score_holds_to_the_last_ms_of_a_bin_but_two(ran_ms: int) -> None:
    state = queue(entry("a"), entry("b"), base_policy="gittins", preemption="ranked")
    change(state, running=(holding("a"),), started=(Started(job_id="a", at=AT),))
    assert state.pool is not None
    begun = rank_running(state, state.pool, AT + ran_ms)
    (place,) = state.running_order.order
    assert place.until > AT + ran_ms
    for at, same in ((int(place.until) - 1, True), (int(place.until) + 4, False)):
        fresh = pickle.loads(pickle.dumps(state))
        assert (rank_running(fresh, state.pool, at) == begun) is same


def test_a_ranking_without_changes_gives_the_same_tuple() -> None:
    state = queue(entry("a"), entry("b"), base_policy="gittins", preemption="ranked")
    change(state, running=(holding("a"), holding("b")))
    assert state.pool is not None
    first = rank_running(state, state.pool, AT + 1)
    assert len(first) == 2
    assert rank_running(state, state.pool, AT + 60_000) is first
