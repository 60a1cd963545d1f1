from __future__ import annotations

from services.throttle.core.disciplines.fcfs import Fcfs
from tests.services.throttle.core.disciplines.serving import a_request, served


def test_requests_are_served_in_the_order_of_arrival() -> None:
    order = Fcfs()
    first, second, third = (a_request(name) for name in "123")
    for request in (first, second, third):
        order.enqueue(request)
    order.withdraw(second)
    assert order.next_request() is first
    served(order, first, 5)
    assert order.next_request() is third
    order.start(third)
    assert order.next_request() is None


def test_it_has_no_counters() -> None:
    order = Fcfs()
    order.set_weight("a", 2)
    order.rebase()
    assert order.level == 0
