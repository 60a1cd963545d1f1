"""Each order keeps the bound that its docstring states, over random loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from services.throttle.core.disciplines.accounts import Account
from services.throttle.core.disciplines.catalog import berth, vtc_predict
from services.throttle.core.disciplines.cost import LINEAR
from services.throttle.core.disciplines.discipline import Discipline
from services.throttle.core.disciplines.drr import DeficitRoundRobin
from services.throttle.core.disciplines.lengths import ShrunkMean
from services.throttle.core.disciplines.limits import Limits
from services.throttle.core.disciplines.near_equal import EarliestDeadline, LongestPrefix, NearEqual
from services.throttle.core.disciplines.priority_classes import PriorityClasses
from services.throttle.core.disciplines.seam import ServingOrder
from services.throttle.core.disciplines.vtc import Vtc
from tests.services.throttle.core.disciplines.profiled_cost import ProfiledCost
from tests.services.throttle.core.disciplines.serving import Endpoint, Load, random_load

SLACK = 80.0
QUANTUM = 50.0
MOST_PASSED = 4


@dataclass(slots=True)
class Backlog:
    """The gap of two tenants while both wait: its extremes, and the most forecast at once.

    The gap in any part of that time is at most the distance of the extremes.
    """

    accounts: Mapping[str, Account]
    weights: Mapping[str, float]
    lowest: float = 0.0
    highest: float = 0.0
    most_forecast: float = 0.0
    most_held: float = 0.0
    ended: bool = False

    def __call__(self, endpoint: Endpoint) -> None:
        waiting = {r.tenant for key, r in endpoint.requests.items() if key not in endpoint.engine}
        self.ended = self.ended or waiting != {"a", "b"}
        if self.ended:
            return
        per_weight = {t: endpoint.service[t] / self.weights.get(t, 1.0) for t in "ab"}
        gap = per_weight["a"] - per_weight["b"]
        self.lowest, self.highest = min(self.lowest, gap), max(self.highest, gap)
        for account in self.accounts.values():
            self.most_forecast = max(self.most_forecast, account.forecast_cost)
        for tenant in "ab":
            running = (endpoint.requests[key] for key in endpoint.engine)
            held = [r for r in running if r.tenant == tenant]
            cost = sum(endpoint.cost.of(r.prompt_tokens, r.max_output_tokens) for r in held)
            self.most_held = max(self.most_held, cost)

    @property
    def gap(self) -> float:
        return self.highest - self.lowest


def backlog_of(discipline: Discipline, load: Load, **weights: float) -> Backlog:
    for tenant, weight in weights.items():
        discipline.set_weight(tenant, weight)
    cost = getattr(discipline.order, "cost", LINEAR)
    backlog = Backlog(accounts_of(discipline.order), weights)
    Endpoint(discipline, load.batch_tokens, cost).serve(load.offers, backlog)
    return backlog


def accounts_of(order: ServingOrder) -> Mapping[str, Account]:
    match order:
        case Vtc():
            return order.accounts.by_tenant
        case NearEqual():
            return order.order.accounts.by_tenant
        case _:
            return {}


def near_equal(load: Load) -> Discipline:
    """Tenant `b` always has the earlier deadline and the cached prefix."""
    for offer in load.offers:
        if offer.request.tenant == "b":
            offer.request.first_token_by = 1
            offer.request.prefix = ("system",)
    preferences = EarliestDeadline(), LongestPrefix()
    return Discipline(NearEqual(Vtc(forecast=ShrunkMean()), preferences, SLACK))


def check_vtc(seed: int) -> None:
    load = random_load(seed)
    assert backlog_of(Discipline(Vtc()), load).gap <= 2 * load.u


def check_berth(seed: int) -> None:
    """Berth's own bound, and the paper's, which it keeps on all loads that were drawn."""
    load = random_load(seed)
    backlog = backlog_of(berth(Limits()), load)
    assert backlog.gap <= 2 * (load.u + backlog.most_forecast)
    assert backlog.gap <= 2 * load.u


def check_vtc_predict(seed: int) -> None:
    load = random_load(seed)
    backlog = backlog_of(vtc_predict(Limits()), load)
    assert backlog.gap <= 2 * (load.u + backlog.most_forecast)


def check_weights(seed: int) -> None:
    load = random_load(seed)
    weight = 1.0 + seed % 7 / 2
    assert backlog_of(Discipline(Vtc()), load, a=weight).gap <= 2 * load.u


def check_profiled_cost(seed: int) -> None:
    load = random_load(seed)
    cost = ProfiledCost()
    backlog = backlog_of(Discipline(Vtc(cost=cost)), load)
    assert backlog.gap <= 2 * max(cost.of(load.longest_prompt, 0), backlog.most_held)


def check_near_equal(seed: int) -> None:
    load = random_load(seed)
    backlog = backlog_of(near_equal(load), load)
    assert backlog.gap <= 2 * (load.u + backlog.most_forecast + SLACK)


def check_round_robin(seed: int) -> None:
    load = random_load(seed)
    order = DeficitRoundRobin(QUANTUM)
    assert backlog_of(Discipline(order), load).gap <= 2 * (load.u + QUANTUM)


def check_classes(seed: int) -> None:
    """Within a class the bound of its order; no class waits for more starts than stated."""
    load = random_load(seed, "abcd")
    for offer in load.offers:
        offer.request.priority = int(offer.request.tenant in "cd")
    order = PriorityClasses((Vtc(), Vtc()), MOST_PASSED)
    extremes = {"ab": [0.0], "cd": [0.0]}

    def note(endpoint: Endpoint) -> None:
        waits = {r.tenant for key, r in endpoint.requests.items() if key not in endpoint.engine}
        for pair in list(extremes):
            if not waits.issuperset(pair):
                check(extremes.pop(pair))
            else:
                extremes[pair].append(endpoint.service[pair[0]] - endpoint.service[pair[1]])

    def check(gaps: list[float]) -> None:
        assert max(gaps) - min(gaps) <= 2 * load.u

    endpoint = Endpoint(Discipline(order), load.batch_tokens)
    endpoint.serve(load.offers, note)
    low_starts = [place for place, key in enumerate(endpoint.started) if key[0] in "cd"]
    waited = [after - before for before, after in zip([-1, *low_starts], low_starts, strict=False)]
    assert max(waited) <= MOST_PASSED + 1


CHECKS: tuple[Callable[[int], None], ...] = (
    check_vtc,
    check_berth,
    check_vtc_predict,
    check_weights,
    check_profiled_cost,
    check_near_equal,
    check_round_robin,
    check_classes,
)


NAMES = [check.__name__.removeprefix("check_") for check in CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_two_backlogged_tenants_differ_by_the_stated_bound_at_most(
    check: Callable[[int], None],
) -> None:
    for seed in range(40):
        check(seed)


@pytest.mark.parts
@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
def test_the_bounds_hold_over_ten_thousand_loads(check: Callable[[int], None]) -> None:
    for seed in range(10_000 if check in (check_vtc, check_berth) else 2_000):
        check(100 + seed)
