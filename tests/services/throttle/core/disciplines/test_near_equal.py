from __future__ import annotations

import pytest

from services.throttle.core.disciplines.bounded_table import BoundedTable
from services.throttle.core.disciplines.near_equal import (
    EarliestDeadline,
    LongestPrefix,
    NearEqual,
    Preference,
)
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.vtc import Vtc
from tests.services.throttle.core.disciplines.serving import a_request, served


def order_of(*preferences: Preference, slack: float = 50, **counters: float) -> NearEqual:
    order = NearEqual(Vtc(), preferences, slack)
    for number, (tenant, counter) in enumerate(counters.items()):
        order.enqueue(a_request(tenant, tenant, at=number))
        order.order.accounts.of(tenant).counter = counter
    order.order.queue.reindex()
    return order


def waiting(order: NearEqual, tenant: str) -> ServedRequest:
    return order.order.queue.queues[tenant].requests[0]


def test_of_nearly_equal_tenants_the_earliest_deadline_is_next() -> None:
    order = order_of(EarliestDeadline(), a=0, b=40, c=50, d=51)
    for tenant, due in (("b", 900), ("c", 800), ("d", 1)):
        waiting(order, tenant).first_token_by = due
    assert order.next_request() is waiting(order, "c")


def test_without_a_difference_the_smallest_counter_is_next() -> None:
    order = order_of(EarliestDeadline(), LongestPrefix(), b=3, a=1)
    assert order.next_request() is waiting(order, "a")
    assert NearEqual(Vtc(), (), 1).next_request() is None


def test_the_longest_cached_prefix_is_next() -> None:
    cached = LongestPrefix()
    order = order_of(cached, a=0, b=10, c=20)
    for tenant, prefix in (("a", ("x",)), ("b", ("s", "t")), ("c", ("s", "u"))):
        waiting(order, tenant).prefix = prefix
    assert order.next_request() is waiting(order, "a")
    before = a_request("before", "z")
    before.prefix = ("s", "u", "v")
    order.enqueue(before)
    served(order, before)
    assert order.next_request() is waiting(order, "c")


def test_the_first_blocks_of_a_prefix_are_evicted_last() -> None:
    cached = LongestPrefix(BoundedTable(2))
    request = a_request()
    request.prefix = ("s", "t", "u")
    cached.note_started(request)
    assert cached.penalty(request) == -2


def test_it_charges_weighs_and_rebases_as_its_order_does() -> None:
    order = order_of(EarliestDeadline(), a=200, b=300)
    order.set_weight("a", 2)
    first = order.next_request()
    assert first is not None
    served(order, first, 5)
    assert order.order.accounts.of("a").counter == 200 + (10 + 10) / 2
    order.withdraw(waiting(order, "b"))
    assert order.next_request() is None
    assert order.level == 300
    order.rebase()
    assert order.level == 0


def test_a_negative_slack_is_an_error() -> None:
    with pytest.raises(ValueError, match="slack"):
        NearEqual(Vtc(), (), -1)
