from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from services.throttle.core.disciplines.budgets import (
    REQUESTS,
    TOKENS,
    Budget,
    Holder,
    PriceList,
    Prices,
    Usage,
)
from services.throttle.core.disciplines.meters import HalfLife, Memory, SlidingWindow
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import Throttled
from services.throttle.core.disciplines.spent import HELD_RETRY_MS
from tests.services.throttle.core.disciplines.serving import IDLE, a_request

MONEY = PriceList("money", Prices(0, 1, 4), {"big": Prices(0, 10, 40)})


def usage_of(budget: Budget) -> Usage | None:
    """Return the use of tenant `a`."""
    own = budget.usages.get("")
    return None if own is None else own.get("a")


def is_refused(budget: Budget, request: ServedRequest, now: int = 0) -> bool:
    return budget.refusal(request, IDLE, now) is not None


def held(budget: Budget) -> list[float]:
    return [usage.held for own in budget.usages.values.values() for usage in own.values.values()]


def end(budget: Budget, request: ServedRequest, tokens: int, at: int = 0) -> None:
    budget.note_started(request, at)
    budget.note_made(request, tokens, at)
    request.made_tokens += tokens
    budget.note_finished(request)


def test_requests_that_wait_or_run_hold_their_price() -> None:
    budget = Budget(45)
    one, two, three = (a_request(name) for name in "123")
    for request in (one, two):
        assert not is_refused(budget, request)
        budget.note_queued(request)
    assert budget.refusal(three, IDLE, 0) == Throttled("tenant_tokens", HELD_RETRY_MS)
    assert held(budget) == [40]
    budget.note_withdrawn(two)
    assert not is_refused(budget, three)


def test_the_end_releases_what_was_not_used() -> None:
    budget, request = Budget(45), a_request()
    budget.note_queued(request)
    end(budget, request, 4)
    assert held(budget) == [0]
    assert not is_refused(budget, a_request("2", prompt=21))
    refused = budget.refusal(a_request("2", prompt=22), IDLE, 0)
    assert refused == Throttled("tenant_tokens", None)


def test_a_request_above_the_limit_can_never_be_served() -> None:
    refused = Budget(19).refusal(a_request(), IDLE, 0)
    assert refused is not None
    assert refused == Throttled("above_budget", None)
    assert refused.detail.startswith("budget of tenant 'a': 19 tokens in all, 0 used, 0 held by")


def test_output_beyond_the_limit_of_a_request_is_used_too() -> None:
    budget, request = Budget(100), a_request()
    budget.note_queued(request)
    end(budget, request, 25)
    usage = usage_of(budget)
    assert usage is not None
    assert (usage.held, usage.meter.total(0)) == (0, 35)


def test_a_half_life_gives_a_budget_back() -> None:
    budget, request = Budget(40, memory=HalfLife(1000)), a_request(limit=30)
    budget.note_queued(request)
    end(budget, request, 30)
    refused = budget.refusal(a_request("2"), IDLE, 0)
    assert refused == Throttled("tenant_tokens", 1000)
    assert not is_refused(budget, a_request("2"), now=1000)


def test_budgets_of_users_are_those_of_a_tenant() -> None:
    budget = Budget(20, holder="user")
    for tenant, user in (("a", "x"), ("a", "y"), ("b", "x")):
        request = a_request(tenant=tenant)
        request.user = user
        assert not is_refused(budget, request)
        budget.note_queued(request)
        assert is_refused(budget, request)


@pytest.mark.parametrize(("holder", "is_shared"), [("application", False), ("model", True)])
def test_the_budget_of_a_model_counts_all_tenants_and_that_of_an_application_one(
    holder: Holder, is_shared: bool
) -> None:
    budget = Budget(20, holder=holder)
    budget.note_queued(a_request(tenant="a"))
    assert is_refused(budget, a_request(tenant="a"))
    assert is_refused(budget, a_request(tenant="b")) is is_shared


def test_money_depends_on_the_model() -> None:
    budget = Budget(499, MONEY)
    cheap, dear = a_request(), a_request()
    dear.model = "big"
    assert not is_refused(budget, cheap)
    assert is_refused(budget, dear)


def test_a_budget_of_requests_counts_them_when_they_are_queued() -> None:
    budget = Budget(1, REQUESTS, memory=SlidingWindow(60_000))
    request = a_request()
    budget.note_queued(request)
    assert is_refused(budget, a_request("2"))
    budget.note_withdrawn(request)
    assert is_refused(budget, a_request("2"))
    assert not is_refused(budget, a_request("2"), now=65_000)


def test_a_limit_of_zero_is_an_error() -> None:
    with pytest.raises(ValueError, match="limit: 0 tokens"):
        Budget(0)


@pytest.mark.parametrize("memory", [HalfLife(3000), SlidingWindow(3000), HalfLife()])
@pytest.mark.parametrize("prices", [TOKENS, MONEY, REQUESTS])
def test_requests_at_the_same_time_never_pass_a_limit_together(
    memory: Memory, prices: PriceList
) -> None:
    """LiteLLM #18730, #27736 and #41610: reservations, not what ended, count at the entrance."""
    chance = random.Random(5)
    limit = 7.0 if prices is REQUESTS else 400.0
    budget = Budget(limit, prices, memory=memory)
    waiting: list[ServedRequest] = []
    running: list[ServedRequest] = []
    for now in range(0, 60_000, 20):
        request = a_request(f"r{now}", "a", chance.randint(1, 60), chance.randint(1, 60), now)
        match chance.randrange(4):
            case 0 if not is_refused(budget, request, now):
                budget.note_queued(request)
                waiting.append(request)
            case 1 if waiting:
                started = waiting.pop(chance.randrange(len(waiting)))
                if chance.random() < 0.2:
                    budget.note_withdrawn(started)
                else:
                    budget.note_started(started, now)
                    running.append(started)
            case 2 if running:
                ended = running.pop(chance.randrange(len(running)))
                budget.note_finished(ended)
            case _:
                for made in running:
                    if made.remaining_tokens:
                        budget.note_made(made, 1, now)
                        made.made_tokens += 1
        usage = usage_of(budget)
        assert usage is None or usage.meter.total(now) + usage.held <= limit + 1e-6


@pytest.mark.parametrize("memory", [SlidingWindow(1200), HalfLife(1200)])
def test_a_refund_is_forgotten_with_the_charge_that_it_lowers(memory: Memory) -> None:
    """The engine counted 10 of 910 reserved prompt tokens, at the end of a long answer."""
    budget, request = Budget(1000, memory=memory), a_request(prompt=910)
    budget.note_queued(request)
    request.started_at = 0
    budget.note_started(request, 0)
    budget.note_prompt(request, -900, 1100)
    usage = usage_of(budget)
    assert usage is not None
    is_window = isinstance(memory, SlidingWindow)
    assert usage.meter.total(1100) == pytest.approx(10 if is_window else 10 * 2 ** (-1100 / 1200))
    assert usage.meter.total(2400) == pytest.approx(0 if is_window else 2.5)


@pytest.mark.parametrize("memory", [SlidingWindow(1200), HalfLife(1200)])
def test_no_order_of_charges_and_refunds_is_remembered_as_less(memory: Memory) -> None:
    for seed in range(200):
        for charges, now, total in draw_charges(memory, seed):
            assert total >= remembered(charges, memory, now) - 1e-6, seed


def draw_charges(memory: Memory, seed: int) -> Iterator[tuple[list[tuple[int, int]], int, float]]:
    """Yield, after each step, charges less their refunds, the time, and what a meter remembers."""
    draw, meter, now = random.Random(seed), memory.meter(), 0
    charges: list[tuple[int, int]] = []
    for _ in range(60):
        now += draw.randrange(150)
        if charges and draw.random() < 0.5:
            place = draw.randrange(len(charges))
            at, units = charges[place]
            refund = draw.randrange(units + 1)
            charges[place] = at, units - refund
            meter.refund(refund, at)
        else:
            charges.append((now, draw.randrange(1, 1000)))
            meter.add(charges[-1][1], now)
        yield charges, now, meter.total(now)


def remembered(charges: list[tuple[int, int]], memory: Memory, now: int) -> float:
    """Return what a meter has to remember of charges, each less what was given back of it."""
    if isinstance(memory, SlidingWindow):
        return sum(units for at, units in charges if now - at < memory.ms)
    assert isinstance(memory, HalfLife)
    return sum(units * 2 ** ((at - now) / memory.ms) for at, units in charges)
