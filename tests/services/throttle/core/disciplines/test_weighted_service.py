from __future__ import annotations

import pytest

from services.throttle.core.disciplines.weighted_service import WeightedService
from tests.services.throttle.core.disciplines.serving import a_request, served


def trained(usual_output: int = 10) -> WeightedService:
    """Calls of 10 prompt and so many output tokens are usual."""
    order = WeightedService()
    for tenant in "xyz":
        request = a_request(tenant, tenant)
        order.enqueue(request)
        served(order, request, usual_output)
    return order


def test_a_usual_call_adds_one_to_the_counter() -> None:
    order = trained()
    request = a_request(tenant="a")
    order.enqueue(request)
    before = order.accounts.of("a").counter
    served(order, request, 10)
    assert order.accounts.of("a").counter - before == pytest.approx(1)


def test_a_call_that_costs_more_than_usual_is_charged_more_by_the_weight() -> None:
    order = trained()
    order.set_weight("a", 2)
    request = a_request(tenant="a", prompt=90)
    order.enqueue(request)
    before = order.accounts.of("a").counter
    served(order, request, 10)
    assert order.accounts.of("a").counter - before == pytest.approx(100 / 20 / 2)


def test_calls_of_interactions_in_progress_go_first() -> None:
    order = WeightedService()
    first, later = a_request("1", "a"), a_request("2", "b", at=1)
    later.stage = 1
    order.enqueue(first)
    order.enqueue(later)
    assert order.next_request() is later
    order.start(later)
    assert order.next_request() is first


def test_among_first_calls_the_smallest_counter_is_next() -> None:
    order = trained()
    one, two, other = a_request("1", "a"), a_request("2", "a"), a_request("3", "b", at=5)
    for request in (one, two, other):
        order.enqueue(request)
    order.start(one)
    assert order.next_request() is other
    order.withdraw(other)
    assert order.next_request() is two


def test_a_tenant_that_returns_is_lifted_and_a_rebase_changes_no_order() -> None:
    order = trained()
    for tenant in "ab":
        for number in range(4):
            order.enqueue(a_request(f"{tenant}{number}", tenant, prompt=20))
    for _ in range(4):
        first = order.next_request()
        assert first is not None
        served(order, first, 10)
    order.enqueue(a_request("new", "c"))
    counter = order.accounts.of("c").counter
    assert counter == order.level > 1
    first = order.next_request()
    order.rebase()
    assert 0 <= order.level < 1
    assert order.next_request() is first
