"""Gittins ranks go along with the scores of running jobs where a stop has a price."""

from __future__ import annotations

import pytest

from services.priority.core.ranking.running import prices_stops
from shared.contracts.pools import PoolConfigured


@pytest.mark.parametrize(
    ("settings", "priced"),
    [
        ({"base_policy": "gittins"}, True),
        ({"base_policy": "gittins", "runtime": "user"}, True),
        ({"base_policy": "srsf", "runtime": "oracle"}, False),
        ({"base_policy": "gittins", "learned": "berth", "runtime": "user"}, False),
        ({"learned": "berth"}, True),
        ({"learned": "berth", "preempt_price": 0.0}, False),
        ({"learned": "berth", "preemption_protection": "residency"}, False),
    ],
)
def test_a_stop_has_a_price_where_history_orders_the_pool(
    settings: dict[str, object], priced: bool
) -> None:
    pool = {"partition": 0, "pool": "p", "preemption_protection": "progress", **settings}
    assert prices_stops(PoolConfigured.model_validate(pool)) is priced
