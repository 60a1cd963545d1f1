from __future__ import annotations

import pickle

import pytest

from services.throttle.core.disciplines.budgets import Budget
from services.throttle.core.disciplines.catalog import DISCIPLINES, berth
from services.throttle.core.disciplines.limits import Limits
from services.throttle.core.disciplines.near_equal import NearEqual
from services.throttle.core.disciplines.priority_classes import PriorityClasses
from tests.services.throttle.core.disciplines.serving import Endpoint, random_load


@pytest.mark.parametrize("name", DISCIPLINES)
def test_every_discipline_serves_what_it_does_not_refuse(name: str) -> None:
    load = random_load(1, "abc", spread_ms=5000)
    endpoint = Endpoint(DISCIPLINES[name](Limits(tenant_per_minute=10)), load.batch_tokens)
    endpoint.serve(load.offers)
    assert len(endpoint.started) + len(endpoint.refused) == len(load.offers)
    assert bool(endpoint.refused) == (name in ("rpm", "fairserve"))


@pytest.mark.parametrize("name", DISCIPLINES)
def test_an_engine_never_idles_while_a_request_waits(name: str) -> None:
    load = random_load(2, "abc", spread_ms=3000)

    def check(endpoint: Endpoint) -> None:
        assert len(endpoint.engine) or not endpoint.waiting

    Endpoint(DISCIPLINES[name](Limits()), load.batch_tokens).serve(load.offers, check)


def test_berth_has_classes_preferences_budgets_and_throttles_by_its_limits() -> None:
    budget = Budget(1000)
    limits = Limits(throttles=True, budgets=(budget,), classes=2, slack=50, cached_blocks=9)
    discipline = berth(limits)
    assert isinstance(discipline.order, PriorityClasses)
    assert isinstance(discipline.order.orders[1], NearEqual)
    names = [type(guard).__name__ for guard in discipline.guards]
    assert names == ["Budget", "InteractionRate", "ServiceShare"]
    pickle.loads(pickle.dumps(discipline))
