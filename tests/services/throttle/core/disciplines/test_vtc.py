from __future__ import annotations

import random

import pytest

from services.throttle.core.disciplines.lengths import MovingMean
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.vtc import Vtc
from tests.services.throttle.core.disciplines.profiled_cost import ProfiledCost
from tests.services.throttle.core.disciplines.serving import a_request, served


def queued(order: Vtc, *requests: ServedRequest) -> None:
    for request in requests:
        order.enqueue(request)


def counter(order: Vtc, tenant: str = "a") -> float:
    return order.accounts.of(tenant).counter


def test_a_prompt_is_charged_at_the_start_and_output_as_it_is_made() -> None:
    order, request = Vtc(), a_request()
    queued(order, request)
    assert counter(order) == 0
    order.start(request)
    assert counter(order) == 10
    request.made_tokens = 3
    order.charge(request)
    order.charge(request)
    assert counter(order) == 16
    order.finish(request)
    assert counter(order) == 16


def test_the_smallest_counter_is_next_and_a_weight_divides_charges() -> None:
    order = Vtc()
    order.set_weight("b", 4)
    queued(order, *(a_request(f"{tenant}{n}", tenant) for tenant in "ab" for n in range(9)))
    tenants = ""
    for _ in range(10):
        request = order.next_request()
        assert request is not None
        tenants += request.tenant
        served(order, request)
    assert tenants.count("b") == 8


def test_a_tenant_that_joins_gets_no_credit_for_its_idle_time() -> None:
    order = Vtc()
    one, two = a_request("1"), a_request("2")
    queued(order, one, two)
    served(order, one, 20)
    queued(order, a_request("3", "new"))
    assert counter(order, "new") == 50


def test_when_no_tenant_waits_the_counter_of_the_last_one_counts() -> None:
    """The branch of algorithm 2 of the paper that its published code leaves out."""
    order, request = Vtc(), a_request("1")
    queued(order, request)
    served(order, request, 20)
    queued(order, a_request("2", "new"))
    assert counter(order, "new") == 50


def test_least_counter_first_does_not_lift() -> None:
    order, request = Vtc(lifts=False), a_request("1")
    queued(order, request)
    served(order, request, 20)
    queued(order, a_request("2", "new"))
    assert counter(order, "new") == 0


def test_a_forecast_is_charged_at_the_start_and_settled_at_the_end() -> None:
    forecast = MovingMean()
    order = Vtc(forecast=forecast)
    forecast.by_tenant["a"] = 8
    short, long = a_request("1"), a_request("2")
    queued(order, short, long)
    order.start(short)
    assert counter(order) == 10 + 16
    short.made_tokens = 5
    order.charge(short)
    assert counter(order) == 26
    order.finish(short)
    assert counter(order) == 10 + 10
    assert forecast.of(long) == pytest.approx(0.8 * 8 + 0.2 * 5)
    served(order, long, 30)
    assert counter(order) == 20 + 10 + 60
    assert order.accounts.of("a").forecast_cost == pytest.approx(0)


def test_a_refund_can_bring_a_tenant_to_the_front() -> None:
    forecast = MovingMean({"a": 100.0})
    order = Vtc(forecast=forecast)
    one, two, other = a_request("1"), a_request("2"), a_request("3", "b", prompt=50)
    queued(order, one, two, other, a_request("4", "b"))
    order.start(one)
    order.start(other)
    assert (first := order.next_request()) is not None
    assert first.tenant == "b"
    order.finish(one)
    assert order.next_request() is two


def test_forecasts_beyond_the_limit_of_a_tenant_are_not_charged() -> None:
    order = Vtc(forecast=MovingMean({"a": 100.0}), most_forecast=300)
    one, two = a_request("1"), a_request("2")
    queued(order, one, two)
    order.start(one)
    order.start(two)
    assert order.accounts.of("a").forecast_cost == 200
    assert counter(order) == 210 + 10
    order.finish(one)
    assert order.accounts.of("a").forecast_cost == 0


def test_a_request_charges_its_profiled_cost() -> None:
    cost = ProfiledCost()
    order, request = Vtc(cost=cost), a_request(prompt=50)
    queued(order, request)
    served(order, request, 20)
    assert counter(order) == pytest.approx(cost.of(50, 20))


def test_a_withdrawn_request_is_not_served_and_not_charged() -> None:
    order, request = Vtc(), a_request()
    queued(order, request)
    order.withdraw(request)
    assert order.next_request() is None
    assert counter(order) == 0


def test_a_rebase_changes_no_order() -> None:
    order = Vtc()
    for tenant, value in (("a", 1e9 + 3), ("b", 1e9 + 1), ("c", 1e9 + 2)):
        queued(order, a_request(tenant, tenant))
        order.accounts.of(tenant).counter = value
    order.queue.reindex()
    assert order.level == 1e9 + 1
    order.rebase()
    assert [counter(order, tenant) for tenant in "abc"] == [2, 0, 1]
    order.rebase()
    tenants = ""
    while (request := order.next_request()) is not None:
        tenants += request.tenant
        served(order, request)
    assert tenants == "bca"


@pytest.mark.parametrize("own", [0, 1, 5])
def test_with_many_queues_the_number_ahead_is_near_the_real_one(own: int) -> None:
    """Queues of different lengths and requests; answers are as long as expected."""
    chance = random.Random(own)
    order = Vtc()
    for number in range(60):
        prompt = chance.randint(10, 300)
        for n in range(chance.choice((1, 1, 2, 4, 8))):
            order.enqueue(a_request(f"t{number}-{n}", f"t{number}", prompt, 50))
    for n in range(own):
        order.enqueue(a_request(f"own-{n}", "own", 100, 50))
    expected = order.ahead(a_request("new", "own", 100, 50), lambda request: 50.0)
    assert not expected.requests
    order.enqueue(a_request("new", "own", 100, 50, at=1))
    before = 0
    while (request := order.next_request()) is not None and request.request_id != "new":
        served(order, request, 50)
        before += 1
    assert abs(expected.count - before) <= 0.12 * before + 2
    assert expected.tokens == pytest.approx(50 * expected.count, rel=0.05, abs=50)


def test_the_accounts_know_what_runs_until_it_is_finished() -> None:
    order = Vtc()
    request = a_request("r1", "a")
    order.enqueue(request)
    order.start(request)
    assert order.accounts.of("a").running == {"r1": request}
    competition = order.competition(a_request("r2", "a"))
    assert list(competition.own.running) == [request]
    order.finish(request)
    assert not order.accounts.of("a").running
