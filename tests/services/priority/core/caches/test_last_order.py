"""A ranking that is recorded as its changes is the ranking itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given as drawn
from hypothesis import strategies as st

from services.priority.core.caches.last_order import (
    RESTATED_EVERY,
    LastOrder,
    changes_since,
    order_of,
)
from services.priority.core.decide import Priority
from services.priority.core.state import PriorityState
from shared.contracts.base import Event
from shared.contracts.codec import decode_event, encode_event
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.reranking import QueueReranked
from tests.harness.decider import AT, an_input, given, run
from tests.services.priority.core.lane import admitted, pool, running, succeeded

PRIORITY = Priority()
JOBS = st.lists(st.sampled_from("abcdefgh"), unique=True)
SCORES = st.sampled_from((0.0, 0.1, 1 / 3, -2.5))


@st.composite
def rankings(draw: st.DrawFn) -> list[QueueRanked]:
    """Draw rankings of jobs that keep their order at equal scores, as the queue scan has it."""
    return [draw(ranking()) for _ in range(draw(st.integers(1, 6)))]


@st.composite
def ranking(draw: st.DrawFn) -> QueueRanked:
    ranked = [Ranked(job_id=name, score=draw(SCORES)) for name in draw(JOBS)]
    ranked.sort(key=lambda job: (-job.score, job.job_id))
    holders = [
        Ranked(job_id=name, score=draw(SCORES), gittins_s=draw(st.none() | SCORES))
        for name in draw(JOBS)
    ]
    terms = draw(st.dictionaries(st.sampled_from(("x", "y", "z")), SCORES))
    return QueueRanked(
        base_policy="sjf", ranked=ranked, running=holders, terms=terms, waiting=len(ranked)
    )


@drawn(rankings())
def test_orders_from_changes_are_those_of_whole_rankings(orders: list[QueueRanked]) -> None:
    last = order_of(orders[0])
    for number, whole in enumerate(orders[1:], start=1):
        changes = changes_since(last, whole)
        assert changes is not None, "jobs of equal scores keep their order"
        assert changes.number == number
        last.apply(read_back(changes))
        assert content(last) == content(order_of(whole))


def read_back(changes: QueueReranked) -> QueueReranked:
    event = decode_event(changes.TYPE, encode_event(changes))
    assert isinstance(event, QueueReranked)
    return event


def content(order: LastOrder) -> tuple[Any, ...]:
    return (order.policy, list(order.waiting.items()), order.running, order.terms)


def whole(*names: str, **fields: Any) -> QueueRanked:
    ranked = [Ranked(job_id=name, score=1) for name in names]
    return QueueRanked.model_validate({"base_policy": "sjf", "ranked": ranked} | fields)


def test_jobs_that_exchange_places_at_one_score_are_recorded_in_full() -> None:
    assert changes_since(order_of(whole("a", "b")), whole("b", "a")) is None


def test_another_policy_is_recorded_in_full() -> None:
    last = order_of(whole("a"))
    assert changes_since(last, whole("a", base_policy="srsf")) is None
    assert changes_since(last, whole("a", learned="net", model_sha256="ab")) is None
    assert changes_since(last, whole("a", runtime="history")) is None


def test_every_300th_ranking_is_recorded_in_full() -> None:
    last = order_of(whole("a"))
    last.number = RESTATED_EVERY - 2
    assert changes_since(last, whole("a")) is not None
    last.number += 1
    assert changes_since(last, whole("a")) is None


def changed_queue() -> PriorityState:
    state = given(PRIORITY, pool("sjf", rank_changes=True, runtime="user"))
    (first,) = orders(run(PRIORITY, state, [admitted("long", walltime_s=90.0)]))
    assert isinstance(first, QueueRanked) and first.changes_follow
    return state


def orders(events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, QueueRanked | QueueReranked)]


def test_a_ranking_names_the_jobs_that_are_new_and_those_that_left() -> None:
    state = changed_queue()
    (entered,) = orders(run(PRIORITY, state, [admitted("short", walltime_s=9.0)], AT + 1000))
    assert isinstance(entered, QueueReranked)
    assert (entered.ranked[0].job_id, entered.places, entered.waiting) == ("short", (0,), 2)
    gone = [*running("short"), succeeded("short"), admitted("next", walltime_s=95.0)]
    (left,) = orders(run(PRIORITY, state, gone, AT + 2000))
    assert isinstance(left, QueueReranked)
    assert (left.left_ranked, left.places, left.number) == (("short",), (1,), 2)
    assert state.last_order is not None and list(state.last_order.waiting) == ["long", "next"]
    assert (state.head, state.ranked_at) == ("long", AT + 2000)


def test_the_ranking_after_a_change_of_the_pool_is_recorded_in_full() -> None:
    state = changed_queue()
    settings = pool("sjf", rank_changes=True, runtime="user", rank_ms=500)
    (first,) = orders(run(PRIORITY, state, [an_input(settings, "access")], AT + 1000))
    assert isinstance(first, QueueRanked) and first.changes_follow


def test_a_pool_of_an_earlier_release_has_whole_rankings() -> None:
    state = given(PRIORITY, pool("sjf", runtime="user"))
    for number in range(3):
        (order,) = orders(run(PRIORITY, state, [admitted(f"j{number}")], AT + 1000 * number))
        assert isinstance(order, QueueRanked) and not order.changes_follow
    assert state.last_order is None
