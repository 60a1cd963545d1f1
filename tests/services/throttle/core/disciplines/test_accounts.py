"""The front of a line is the tenant with the smallest counter, whatever happened before."""

from __future__ import annotations

import random

from services.throttle.core.disciplines.accounts import MOST_STALE, Account, Line, level, lift
from tests.services.throttle.core.disciplines.serving import a_request


def line_of(**counters: float) -> Line:
    line = Line()
    for number, (tenant, counter) in enumerate(counters.items()):
        line.append(Account(tenant, counter=counter), a_request(tenant, tenant, at=number))
    return line


def front_of(line: Line) -> str | None:
    front = line.front()
    return front.account.tenant if front else None


def test_charges_and_refunds_are_divided_by_the_weight() -> None:
    account = Account("a", weight=4)
    account.charge(8)
    account.charge(-4)
    assert account.counter == 1


def test_the_smallest_counter_is_at_the_front() -> None:
    assert front_of(line_of(a=3, b=1, c=2)) == "b"
    assert front_of(Line()) is None
    assert Line().first_request() is None


def test_ties_go_by_arrival_then_by_name() -> None:
    assert front_of(line_of(b=1, a=1)) == "b"
    line = Line()
    for tenant in "ba":
        line.append(Account(tenant), a_request(tenant, tenant))
    assert front_of(line) == "a"


def test_a_counter_that_grew_or_shrank_moves_its_queue() -> None:
    line = line_of(a=1, b=2)
    line.queues["a"].account.charge(5)
    assert front_of(line) == "b"
    line.refund(line.queues["a"].account, 5)
    assert front_of(line) == "a"
    line.refund(Account("idle", counter=1), 9)
    assert front_of(line) == "a"


def test_queues_near_the_front_come_in_order_and_stay() -> None:
    line = line_of(a=1, b=5, c=3, d=9)
    near = [queue.account.tenant for queue in line.near_front(4, 10)]
    assert near == ["a", "c", "b"]
    assert [queue.account.tenant for queue in line.near_front(4, 2)] == ["a", "c"]
    assert front_of(line) == "a"
    assert Line().near_front(1, 3) == []


def test_the_front_agrees_with_a_scan_over_random_changes() -> None:
    chance = random.Random(3)
    line, accounts = Line(), [Account(f"t{n}") for n in range(12)]
    for number in range(3000):
        account = chance.choice(accounts)
        match chance.randrange(4):
            case 0:
                request = a_request(f"r{number}", account.tenant, at=number)
                line.append(account, request)
            case 1 if account.tenant in line.queues:
                line.remove(chance.choice(line.queues[account.tenant].requests))
            case 2:
                account.charge(chance.randrange(5))
            case 3:
                line.refund(account, chance.randrange(5))
        waiting = [
            (queue.account.counter, queue.requests[0].queued_at, tenant)
            for tenant, queue in line.queues.items()
        ]
        assert front_of(line) == (min(waiting)[2] if waiting else None)
        assert len(line.heap) <= 2 * len(accounts) + MOST_STALE + 1


def test_a_line_does_not_grow_by_requests_that_come_and_go_behind_its_front() -> None:
    line = line_of(a=0)
    other = Account("b", counter=5)
    for number in range(10_000):
        request = a_request(f"r{number}", "b", at=number)
        line.append(other, request)
        line.remove(request)
    assert len(line.heap) <= MOST_STALE + 4
    assert front_of(line) == "a"


def test_a_tenant_that_joins_is_lifted_to_the_smallest_waiting_counter() -> None:
    account = Account("new")
    lift(account, (line_of(a=7), line_of(b=4)), None)
    assert account.counter == 4
    ahead = Account("ahead", counter=9)
    lift(ahead, (line_of(a=7),), None)
    assert ahead.counter == 9


def test_where_no_tenant_waits_it_is_lifted_to_the_one_that_waited_last() -> None:
    account = Account("new")
    lift(account, (Line(),), Account("last", counter=6))
    assert account.counter == 6
    lift(account, (Line(),), None)
    assert account.counter == 6
    assert level((Line(),), None) == 0
