from __future__ import annotations

from services.throttle.core.disciplines.drr import DeficitRoundRobin
from tests.services.throttle.core.disciplines.serving import a_request, served


def order_of(quantum: float, **prompts: int) -> DeficitRoundRobin:
    order = DeficitRoundRobin(quantum)
    for number in range(10):
        for tenant, prompt in prompts.items():
            order.enqueue(a_request(f"{tenant}{number}", tenant, prompt))
    return order


def starts(order: DeficitRoundRobin, count: int) -> str:
    tenants = ""
    for _ in range(count):
        request = order.next_request()
        assert request is not None
        tenants += request.tenant
        served(order, request)
    return tenants


def test_a_turn_lasts_while_the_deficit_is_positive() -> None:
    assert starts(order_of(20, a=10, b=10), 8) == "aabbaabb"
    assert starts(order_of(20, a=10, b=20), 6) == "aabaab"


def test_output_is_a_debt_that_later_quanta_pay() -> None:
    order = order_of(20, a=10, b=10)
    first = order.next_request()
    assert first is not None
    served(order, first, 45)
    assert order.turns["a"].deficit == 20 - 10 - 90
    assert starts(order, 8) == "bbbbbbbb"


def test_a_weight_makes_the_quantum_larger() -> None:
    order = order_of(10, a=10, b=10)
    order.set_weight("a", 3)
    assert starts(order, 8) == "aaabaaab"


def test_a_tenant_that_leaves_takes_no_credit_with_it() -> None:
    order = DeficitRoundRobin(100)
    request = a_request()
    order.enqueue(request)
    served(order, request)
    assert order.turns["a"].deficit == 0
    assert order.next_request() is None
    cancelled = a_request("2", prompt=10)
    order.enqueue(cancelled)
    order.withdraw(cancelled)
    assert not order.round


def test_asking_changes_nothing() -> None:
    order = order_of(20, a=10, b=10)
    assert order.next_request() is order.next_request()
    assert order.turns["a"].deficit == 0
