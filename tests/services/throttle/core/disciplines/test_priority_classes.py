from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.throttle.core.disciplines.cost import LINEAR
from services.throttle.core.disciplines.fcfs import Fcfs
from services.throttle.core.disciplines.lengths import ShrunkMean
from services.throttle.core.disciplines.priority_classes import PriorityClasses
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.vtc import Vtc
from tests.services.throttle.core.disciplines.serving import a_request, served


def berth_order() -> Vtc:
    return Vtc(forecast=ShrunkMean())


def classes_of(counts: dict[int, int], most_passed: int = 3, n: int = 3) -> PriorityClasses:
    order = PriorityClasses(tuple(Fcfs() for _ in range(n)), most_passed)
    for priority, count in counts.items():
        for number in range(count):
            request = a_request(f"{priority}-{number}")
            request.priority = priority
            order.enqueue(request)
    return order


def starts(order: PriorityClasses) -> str:
    numbers = ""
    while (request := order.next_request()) is not None:
        numbers += str(request.priority)
        served(order, request)
    return numbers


def test_the_higher_class_goes_first() -> None:
    assert starts(classes_of({1: 2, 0: 2}, most_passed=20)) == "0011"


def test_a_class_that_was_passed_over_often_enough_is_next() -> None:
    assert starts(classes_of({0: 6, 1: 2})) == "00100100"[:8]


def test_every_class_gets_a_start_within_the_stated_number() -> None:
    order = starts(classes_of({0: 30, 1: 10, 2: 10}, most_passed=4))
    for number in "12":
        places = [-1, *(at for at, started in enumerate(order) if started == number)]
        assert max(b - a for a, b in zip(places, places[1:], strict=False)) <= 4 + 3 - 1


def test_a_priority_beyond_the_last_class_is_of_the_last() -> None:
    order = classes_of({9: 1, 0: 1}, n=2)
    assert order.waiting == [1, 1]


def test_a_class_without_requests_is_not_passed_over() -> None:
    order = classes_of({0: 3})
    request = a_request("late")
    request.priority = 2
    order.enqueue(request)
    served(order, order.next_request() or request)
    order.withdraw(request)
    assert order.waiting == [2, 0, 0]
    assert order.passed == [0, 0, 0]


LONGEST = 40
"""Tokens of the longest prompt and of the longest answer of the property below."""


@given(st.integers(0, 2**32), st.integers(2, 4), st.sampled_from([Vtc, berth_order]))
def test_a_tenant_that_uses_all_classes_gets_no_more_than_one_that_uses_one(
    seed: int, n: int, new_order: Callable[[], Vtc]
) -> None:
    """Both always wait in the highest class; two requests run at a time."""
    chance = random.Random(seed)
    order = PriorityClasses(tuple(new_order() for _ in range(n)))
    service = {"all": 0.0, "one": 0.0}
    running: list[ServedRequest] = []

    def enqueue(tenant: str, priority: int) -> None:
        request = a_request(tenant=tenant, prompt=chance.randint(1, LONGEST))
        request.priority = priority
        order.enqueue(request)

    for priority in range(n):
        enqueue("all", priority)
    enqueue("one", 0)
    for _ in range(200):
        request = order.next_request()
        assert request is not None
        enqueue(request.tenant, request.priority)
        order.start(request)
        running.append(request)
        if len(running) == 2:
            ended = running.pop(chance.randrange(2))
            ended.made_tokens = chance.randint(1, LONGEST)
            order.charge(ended)
            order.finish(ended)
            service[ended.tenant] += LINEAR.of(ended.prompt_tokens, ended.made_tokens)
        most = 2 * LINEAR.of(LONGEST, LONGEST)
        assert service["all"] - service["one"] <= 2 * most


def test_weights_and_rebases_reach_every_class() -> None:
    order = PriorityClasses((Vtc(), Vtc()))
    order.set_weight("a", 2)
    request = a_request("1", prompt=100)
    request.priority = 1
    order.enqueue(request)
    served(order, request)
    assert order.level == 50
    order.rebase()
    assert order.level == 0


def test_classes_need_an_order_and_a_limit() -> None:
    with pytest.raises(ValueError, match="orders"):
        PriorityClasses(())
    with pytest.raises(ValueError, match="most_passed"):
        PriorityClasses((Fcfs(),), 0)
