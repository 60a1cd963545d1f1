"""The disciplines by name, for settings, studies and benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from services.throttle.core.disciplines.bounded_table import BoundedTable
from services.throttle.core.disciplines.budgets import TOKENS, Budget
from services.throttle.core.disciplines.discipline import Discipline
from services.throttle.core.disciplines.drr import DeficitRoundRobin
from services.throttle.core.disciplines.fcfs import Fcfs
from services.throttle.core.disciplines.lengths import MovingMean, ShrunkMean
from services.throttle.core.disciplines.limits import Limits
from services.throttle.core.disciplines.meters import SlidingWindow
from services.throttle.core.disciplines.near_equal import (
    EarliestDeadline,
    LongestPrefix,
    NearEqual,
    Preference,
)
from services.throttle.core.disciplines.priority_classes import PriorityClasses
from services.throttle.core.disciplines.rates import InteractionRate, RequestRate
from services.throttle.core.disciplines.seam import MINUTE_MS, Guard, ServingOrder
from services.throttle.core.disciplines.shares import ServiceShare
from services.throttle.core.disciplines.vtc import Vtc
from services.throttle.core.disciplines.weighted_service import WeightedService


def fcfs(limits: Limits) -> Discipline:
    return Discipline(Fcfs())


def rpm(limits: Limits) -> Discipline:
    return Discipline(Fcfs(), (RequestRate(limits.tenant_per_minute),))


def tpm(limits: Limits) -> Discipline:
    budget = Budget(limits.tenant_tokens_per_minute, TOKENS, "tenant", SlidingWindow(MINUTE_MS))
    return Discipline(Fcfs(), (budget,))


def lcf(limits: Limits) -> Discipline:
    return Discipline(Vtc(lifts=False))


def drr(limits: Limits) -> Discipline:
    return Discipline(DeficitRoundRobin())


def vtc(limits: Limits) -> Discipline:
    return Discipline(Vtc())


def vtc_predict(limits: Limits) -> Discipline:
    return Discipline(Vtc(forecast=MovingMean()))


def fairserve(limits: Limits) -> Discipline:
    return Discipline(WeightedService(), (_interaction_rate(limits),))


def berth(limits: Limits) -> Discipline:
    """VTC with a forecast of few answers; throttles as FairServe does, and by shares.

    `docs/decisions/0038` has the reasons.
    """
    guards: list[Guard] = list(limits.budgets)
    if limits.throttles:
        guards += [_interaction_rate(limits), ServiceShare()]
    orders = tuple(_berth_order(limits) for _ in range(limits.classes))
    return Discipline(orders[0] if len(orders) == 1 else PriorityClasses(orders), tuple(guards))


def _berth_order(limits: Limits) -> ServingOrder:
    order = Vtc(forecast=ShrunkMean())
    if not limits.slack:
        return order
    preferences: list[Preference] = [EarliestDeadline()]
    if limits.cached_blocks:
        preferences.append(LongestPrefix(BoundedTable(limits.cached_blocks)))
    return NearEqual(order, tuple(preferences), limits.slack)


def _interaction_rate(limits: Limits) -> InteractionRate:
    return InteractionRate(limits.tenant_per_minute, limits.application_per_minute)


DISCIPLINES: Mapping[str, Callable[[Limits], Discipline]] = {
    "fcfs": fcfs,
    "rpm": rpm,
    "tpm": tpm,
    "lcf": lcf,
    "drr": drr,
    "vtc": vtc,
    "vtc_predict": vtc_predict,
    "fairserve": fairserve,
    "berth": berth,
}
