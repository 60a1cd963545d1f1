"""The front of a queue is the tenant with the smallest counter, whatever happened before."""

from __future__ import annotations

import random

from services.throttle.core.disciplines.accounts import MOST_STALE, Account, FairQueue, level, lift
from tests.services.throttle.core.disciplines.serving import a_request


def queue_of(**counters: float) -> FairQueue:
    fair_queue = FairQueue()
    for number, (tenant, counter) in enumerate(counters.items()):
        fair_queue.append(Account(tenant, counter=counter), a_request(tenant, tenant, at=number))
    return fair_queue


def front_of(fair_queue: FairQueue) -> str | None:
    front = fair_queue.front()
    return front.account.tenant if front else None


def test_charges_and_refunds_are_divided_by_the_weight() -> None:
    account = Account("a", weight=4)
    account.charge(8)
    account.charge(-4)
    assert account.counter == 1


def test_the_smallest_counter_is_at_the_front() -> None:
    assert front_of(queue_of(a=3, b=1, c=2)) == "b"
    assert front_of(FairQueue()) is None
    assert FairQueue().first_request() is None


def test_ties_go_by_arrival_then_by_name() -> None:
    assert front_of(queue_of(b=1, a=1)) == "b"
    fair_queue = FairQueue()
    for tenant in "ba":
        fair_queue.append(Account(tenant), a_request(tenant, tenant))
    assert front_of(fair_queue) == "a"


def test_a_counter_that_grew_or_shrank_moves_its_queue() -> None:
    fair_queue = queue_of(a=1, b=2)
    fair_queue.queues["a"].account.charge(5)
    assert front_of(fair_queue) == "b"
    fair_queue.refund(fair_queue.queues["a"].account, 5)
    assert front_of(fair_queue) == "a"
    fair_queue.refund(Account("idle", counter=1), 9)
    assert front_of(fair_queue) == "a"


def test_queues_near_the_front_come_in_order_and_stay() -> None:
    fair_queue = queue_of(a=1, b=5, c=3, d=9)
    near = [queue.account.tenant for queue in fair_queue.near_front(4, 10)]
    assert near == ["a", "c", "b"]
    assert [queue.account.tenant for queue in fair_queue.near_front(4, 2)] == ["a", "c"]
    assert front_of(fair_queue) == "a"
    assert FairQueue().near_front(1, 3) == []


def test_the_front_agrees_with_a_scan_over_random_changes() -> None:
    chance = random.Random(3)
    fair_queue, accounts = FairQueue(), [Account(f"t{n}") for n in range(12)]
    for number in range(3000):
        account = chance.choice(accounts)
        match chance.randrange(4):
            case 0:
                request = a_request(f"r{number}", account.tenant, at=number)
                fair_queue.append(account, request)
            case 1 if account.tenant in fair_queue.queues:
                fair_queue.remove(chance.choice(fair_queue.queues[account.tenant].requests))
            case 2:
                account.charge(chance.randrange(5))
            case 3:
                fair_queue.refund(account, chance.randrange(5))
        waiting = [
            (queue.account.counter, queue.requests[0].queued_at, tenant)
            for tenant, queue in fair_queue.queues.items()
        ]
        assert front_of(fair_queue) == (min(waiting)[2] if waiting else None)
        assert len(fair_queue.heap) <= 2 * len(accounts) + MOST_STALE + 1


def test_a_line_does_not_grow_by_requests_that_come_and_go_behind_its_front() -> None:
    fair_queue = queue_of(a=0)
    other = Account("b", counter=5)
    for number in range(10_000):
        request = a_request(f"r{number}", "b", at=number)
        fair_queue.append(other, request)
        fair_queue.remove(request)
    assert len(fair_queue.heap) <= MOST_STALE + 4
    assert front_of(fair_queue) == "a"


def test_a_tenant_that_joins_is_lifted_to_the_smallest_waiting_counter() -> None:
    account = Account("new")
    lift(account, (queue_of(a=7), queue_of(b=4)), None)
    assert account.counter == 4
    ahead = Account("ahead", counter=9)
    lift(ahead, (queue_of(a=7),), None)
    assert ahead.counter == 9


def test_where_no_tenant_waits_it_is_lifted_to_the_one_that_waited_last() -> None:
    account = Account("new")
    lift(account, (FairQueue(),), Account("last", counter=6))
    assert account.counter == 6
    lift(account, (FairQueue(),), None)
    assert account.counter == 6
    assert level((FairQueue(),), None) == 0
