"""The discipline that the settings of an endpoint describe, also while requests are open."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from services.throttle.core.disciplines.budgets import REQUESTS, TOKENS, Budget, PriceList, Prices
from services.throttle.core.disciplines.catalog import DISCIPLINES
from services.throttle.core.disciplines.discipline import Discipline
from services.throttle.core.disciplines.limits import Limits
from services.throttle.core.disciplines.meters import HalfLife, Memory, SlidingWindow
from services.throttle.core.state import EndpointState
from shared.contracts.endpoints import EndpointSettings, TokenBudget

MILLION = 1e6

SHAPING = (
    "discipline",
    "throttles",
    "tenant_per_minute",
    "application_per_minute",
    "tenant_tokens_per_minute",
    "classes",
    "slack",
    "cached_blocks",
)
"""Settings of which a change makes a new discipline; of others only the budgets are new."""


def prices_of(settings: EndpointSettings) -> Prices:
    return Prices(
        settings.request_price, settings.prompt_price / MILLION, settings.output_price / MILLION
    )


def cost_of(settings: EndpointSettings, prompt_tokens: int, output_tokens: int) -> float:
    """Return the money for a request."""
    prices = prices_of(settings)
    return round(
        prices.request + prices.prompt_token * prompt_tokens + prices.output_token * output_tokens,
        9,
    )


def reconfigure(state: EndpointState, settings: EndpointSettings) -> None:
    """Give the state the discipline of new settings, in which its open requests go on.

    Budgets keep what was used, as long as holder, unit and memory are the same; an endpoint that is
    new on its lane has nothing of one that was deleted.
    """
    former, before = state.discipline, state.endpoint
    if before is None or _shape(before) != _shape(settings):
        state.discipline = new_discipline(settings)
        for noted in state.tenants.values():
            state.discipline.set_weight(noted.tenant, noted.weight)
        _reopen_order(state)
        budgets = _budgets_of(former) if before is not None else []
    elif before.budgets != settings.budgets or prices_of(before) != prices_of(settings):
        budgets = _budgets_of(former)
        others = former.guards[len(before.budgets) :]
        state.discipline = Discipline(former.order, (*_budgets(settings), *others))
    else:
        return
    for guard in state.discipline.guards:
        if isinstance(guard, Budget):
            _inherit(state, guard, budgets)


def _budgets_of(discipline: Discipline) -> list[Budget]:
    return [guard for guard in discipline.guards if isinstance(guard, Budget)]


def new_discipline(settings: EndpointSettings) -> Discipline:
    limits = Limits(
        tenant_per_minute=settings.tenant_per_minute,
        application_per_minute=settings.application_per_minute,
        tenant_tokens_per_minute=settings.tenant_tokens_per_minute,
        throttles=settings.throttles,
        classes=settings.classes,
        slack=settings.slack,
        cached_blocks=settings.cached_blocks,
    )
    discipline = DISCIPLINES[settings.discipline](limits)
    return Discipline(discipline.order, (*_budgets(settings), *discipline.guards))


def _shape(settings: EndpointSettings) -> tuple[object, ...]:
    return tuple(getattr(settings, name) for name in SHAPING)


def _budgets(settings: EndpointSettings) -> Iterator[Budget]:
    lists = {
        "requests": REQUESTS,
        "tokens": TOKENS,
        "money": PriceList("money", prices_of(settings)),
    }
    for budget in settings.budgets:
        yield Budget(budget.limit, lists[budget.unit], budget.holder, _memory(budget))


def _memory(budget: TokenBudget) -> Memory:
    period_ms = round(1000 * budget.period_s)
    match budget.memory:
        case "window":
            return SlidingWindow(period_ms)
        case "half_life":
            return HalfLife(period_ms)
        case "forever":
            return HalfLife()


def _reopen_order(state: EndpointState) -> None:
    """Enter the open requests into a new order, with what was made so far."""
    order = state.discipline.order
    for request in state.open_requests():
        served = request.served
        served.charged_tokens = served.forecast_tokens = 0.0
        order.enqueue(served)
        if request.request_id in state.running:
            order.start(served)
            order.charge(served)


def _inherit(state: EndpointState, budget: Budget, former: list[Budget]) -> None:
    """Give a budget the use of the same one of before, else what the open requests hold.

    The use is copied: two budgets that differ in their limits alone count for themselves.
    """
    if any(budget is other for other in former):
        return
    for other in former:
        if _is_same(budget, other):
            budget.usages = deepcopy(other.usages)
            if budget.prices != other.prices:
                waiting = (request.served for request in state.waiting.values())
                running = (request.served for request in state.running.values())
                budget.reprice(waiting, running)
            return
    for request in state.open_requests():
        served = request.served
        made_tokens, served.made_tokens = served.made_tokens, 0
        budget.note_queued(served)
        if request.request_id in state.running:
            budget.note_started(served, served.started_at)
            budget.note_made(served, made_tokens, served.started_at)
        served.made_tokens = made_tokens


def _is_same(budget: Budget, other: Budget) -> bool:
    """Return whether the use of one counts for the other: prices may differ, as used money stays
    used.
    """
    return (budget.holder, budget.prices.unit, budget.memory) == (
        other.holder,
        other.prices.unit,
        other.memory,
    )
