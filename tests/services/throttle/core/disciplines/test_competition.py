from __future__ import annotations

import pytest

from services.throttle.core.disciplines.catalog import DISCIPLINES
from services.throttle.core.disciplines.competition import (
    MOST_AHEAD,
    MOST_QUEUES,
    CompetingQueue,
    Competition,
    ahead_in,
)
from services.throttle.core.disciplines.limits import Limits
from services.throttle.core.disciplines.request import ServedRequest


def request(number: int, tenant: str = "a", priority: int = 0) -> ServedRequest:
    return ServedRequest(f"{tenant}{number}", tenant, 10, 10, number, priority=priority)


def cost(served: ServedRequest) -> float:
    return 30.0


def names(requests: object) -> list[str]:
    return [served.request_id for served in requests]  # type: ignore[attr-defined]


def test_queues_take_turns_by_their_counters_and_weights() -> None:
    own = CompetingQueue(0.0, 1.0, [request(1)])
    other = CompetingQueue(10.0, 2.0, [request(number, "b") for number in range(5)])
    ahead = ahead_in(Competition(own, [other], first=3), cost)
    # a1 at 0, b0 at 10, b1 at 25; then a's new request at 30 is before b2 at 40.
    assert names(ahead.requests) == ["a1", "b0", "b1"]
    assert ahead.count == 6


def test_of_equal_counters_the_request_that_arrived_first_is_ahead() -> None:
    own = CompetingQueue(5.0, 1.0, [])
    other = CompetingQueue(5.0, 1.0, [request(1, "b")])
    assert ahead_in(Competition(own, [other]), cost).count == 1


def test_a_tenant_that_sends_on_stays_before_a_long_queue() -> None:
    own = CompetingQueue(0.0, 1.0, [request(n) for n in range(8)])
    idle = CompetingQueue(0.0, 1.0, [request(0, "b")])
    sending = CompetingQueue(0.0, 1.0, [request(0, "b")], sent_per_start=0.5)
    assert ahead_in(Competition(own, [idle]), cost).count == 9
    ahead = ahead_in(Competition(own, [sending]), cost)
    assert ahead.count == 16
    assert ahead.count - ahead.coming == 9, "those that are there"


def test_a_tenant_is_charged_for_the_rest_of_what_runs_while_queues_take_turns() -> None:
    own = CompetingQueue(20.0, 1.0, [])
    waiting = [request(n, "b") for n in range(3)]
    running = request(9, "b")
    running.charged_tokens = 5.0
    other = CompetingQueue(0.0, 1.0, waiting, running=[running])
    # It is charged for 10 tokens more, at 2 each: b's turns are at 20, where it came first, and 30.
    lengths = {running.request_id: 15.0}
    assert ahead_in(Competition(own, [other]), lambda r: lengths.get(r.request_id, 0.0)).count == 1
    running.charged_tokens, running.made_tokens = 40.0, 8
    other = CompetingQueue(60.0, 1.0, waiting, running=[running])
    # Of the 40 tokens that were charged ahead it makes 8 in all: b's turns are at -4, 6 and 16.
    assert ahead_in(Competition(own, [other]), lambda _: 0.0).count == 3
    assert (
        ahead_in(Competition(own, [CompetingQueue(60.0, 1.0, waiting)]), lambda _: 0.0).count == 0
    )


def test_long_queues_are_estimated_as_if_they_took_turns_evenly() -> None:
    own = CompetingQueue(0.0, 1.0, [request(n) for n in range(MOST_AHEAD)])
    other = CompetingQueue(0.0, 1.0, [request(n, "b") for n in range(10 * MOST_AHEAD)])
    ahead = ahead_in(Competition(own, [other]), cost)
    assert len(ahead.requests) == MOST_AHEAD
    assert ahead.count == 2 * MOST_AHEAD + 1
    many = [CompetingQueue(0.0, 1.0, [request(1, f"t{n}")]) for n in range(MOST_QUEUES)]
    ahead = ahead_in(Competition(own, many), cost)
    assert (ahead.requests, ahead.count) == ([], MOST_AHEAD + MOST_QUEUES)


@pytest.mark.parametrize("name", sorted(DISCIPLINES))
def test_every_discipline_serves_the_requests_that_it_names_before_a_new_one(name: str) -> None:
    """With equal requests that cost what is expected, the estimated order is the real one."""
    discipline = DISCIPLINES[name](Limits(classes=2))
    for number in range(4):
        for tenant in "bca"[: 3 if number < 2 else 2]:
            discipline.enqueue(request(number, tenant))
    new = request(9, "a")
    expected = discipline.ahead_of(new, cost).count
    discipline.enqueue(new)
    before = 0
    while (served := discipline.next_request()) is not None and served is not new:
        discipline.start(served, 100)
        discipline.charge(served, 10, 100)
        discipline.finish(served)
        before += 1
    assert abs(before - expected) <= 2


def test_a_lower_class_waits_for_those_above() -> None:
    discipline = DISCIPLINES["berth"](Limits(classes=3))
    for number in range(3):
        discipline.enqueue(request(number, "b", priority=number))
    assert [discipline.ahead_of(request(9, "a", priority=p), cost).count for p in range(3)] == [
        1,
        2,
        3,
    ]
