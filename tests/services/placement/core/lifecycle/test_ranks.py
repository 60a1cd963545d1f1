from __future__ import annotations

import pytest

from services.placement.core.round.view import RANK_FRESH_MS, view_of
from shared.contracts.base import Event
from shared.contracts.placement import RanksChanged, RanksNoted
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.reranking import QueueReranked
from tests.services.placement.core.lane import Lane, job, lane, only

HOUR_MS = 3_600_000


def noted(pool: Lane, *ranked: str, **running: float) -> list[RanksNoted]:
    events = pool.score(running, **dict.fromkeys(ranked, 1.0))
    return [event for event in only(RanksNoted, events) if isinstance(event, RanksNoted)]


def test_ranks_of_jobs_on_gpus_are_left_out_where_rank_stops_none() -> None:
    pool = lane("n")
    pool.run(job("on"))
    pool.submit(job("waiting", 16))
    (event,) = noted(pool, "on", "waiting", "unknown", on=2.0)
    assert [entry.job_id for entry in event.ranked] == ["waiting", "unknown"]
    assert event.running == ()


def test_where_rank_may_stop_jobs_those_on_gpus_are_noted_as_well() -> None:
    pool = lane("n", preemption="ranked")
    pool.run(job("on"))
    (event,) = noted(pool, on=2.0)
    assert [entry.job_id for entry in event.running] == ["on"]


def test_a_rank_of_no_use_is_not_noted() -> None:
    pool = lane("n")
    pool.run(job("on"))
    assert noted(pool, "on") == []


def whole(pool: Lane, **scores: float) -> None:
    ranked = tuple(Ranked(job_id=name, score=score) for name, score in scores.items())
    message = QueueRanked(pool="p", base_policy="srsf", ranked=ranked, changes_follow=True)
    (event,) = pool.feed(pool.an("priority", message))
    assert isinstance(event, RanksNoted) and event.ranked == ranked


def changes(pool: Lane, number: int, left: tuple[str, ...] = (), **scores: float) -> list[Event]:
    ranked = tuple(Ranked(job_id=name, score=score) for name, score in scores.items())
    places = tuple(range(len(ranked)))
    message = QueueReranked(pool="p", number=number, ranked=ranked, places=places, left_ranked=left)
    return only(RanksChanged, pool.feed(pool.an("priority", message)))


def test_changes_are_noted_and_change_the_ranks_of_their_jobs_alone() -> None:
    pool = lane("n", gpus=1)
    pool.run(job("on"))
    pool.submit(job("a"), job("b"))
    whole(pool, a=3.0, b=2.0)
    assert len(changes(pool, 1, ("a",), b=5.0)) == 1
    assert pool.state.ranks.scores == {"b": 5.0}
    changes(pool, 2, a=1.0)
    assert pool.state.ranks.scores == {"b": 5.0, "a": 1.0}


def test_a_rank_that_was_of_no_use_is_used_once_its_job_waits_though_it_did_not_change() -> None:
    pool = lane("n", gpus=1)
    pool.run(job("on"))
    pool.submit(job("a"))
    whole(pool, on=9.0, a=3.0)
    assert pool.state.ranks.scores == {"a": 3.0}
    pool.exited("on", code=1)
    pool.readmit("on", 2)
    changes(pool, 1)
    assert pool.state.ranks.scores == {"on": 9.0, "a": 3.0}


def test_where_no_rank_is_of_use_the_last_ones_stay() -> None:
    pool = lane("n", gpus=1)
    pool.run(job("on"))
    pool.submit(job("a", 8))
    whole(pool, a=3.0)
    at = pool.state.ranks.at
    pool.now += 500
    changes(pool, 1, ("a",), on=1.0)
    assert (pool.state.ranks.scores, pool.state.ranks.at) == ({"a": 3.0}, at)


def test_changes_to_an_order_that_was_not_noted_are_of_no_use() -> None:
    pool = lane("n", gpus=1)
    pool.submit(job("a", 8))
    assert changes(pool, 1, a=3.0) == []
    whole(pool, a=3.0)
    assert changes(pool, 2, a=4.0) == []
    assert pool.state.ranks.scores == {"a": 3.0}


@pytest.mark.parametrize("off_ms", [-HOUR_MS, HOUR_MS])
@pytest.mark.parametrize("follow", [False, True])
def test_the_clock_of_priority_does_not_matter_for_the_age_of_ranks(
    off_ms: int, follow: bool
) -> None:
    pool = lane("n", gpus=1)
    pool.run(job("on"))
    pool.submit(job("a"))
    ranked = (Ranked(job_id="a", score=1.0),)
    message = QueueRanked(pool="p", base_policy="srsf", ranked=ranked, changes_follow=follow)
    pool.feed(pool.an("priority", message)._replace(at=pool.now + off_ms))
    assert not view_of(pool.state, pool.now + RANK_FRESH_MS - 1).ranks_stale
    assert view_of(pool.state, pool.now + RANK_FRESH_MS).ranks_stale
