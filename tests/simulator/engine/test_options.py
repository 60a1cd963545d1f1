"""Options of a simulation and the pool settings that they become."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.contracts.access import PoolSettings
from simulator.engine.options import MARGIN, SimulationOptions, configure_pool, margin_of

SHARED = ("min_residency_s", "large_gang_share", "defragment_after_s", "preemption", "runtime")


@pytest.mark.parametrize("setting", SHARED)
def test_a_simulated_pool_has_the_defaults_of_the_contract(setting: str) -> None:
    pool = configure_pool(SimulationOptions())
    assert getattr(pool, setting) == PoolSettings.model_fields[setting].default


@pytest.mark.parametrize(
    ("options", "margin"),
    [
        (SimulationOptions("fcfs"), 0.0),
        (SimulationOptions("gittins"), MARGIN),
        (SimulationOptions("srsf"), MARGIN),
        (SimulationOptions("fcfs", learned="berth"), MARGIN),
        (SimulationOptions("gittins", preempt_margin=0.1), 0.1),
    ],
)
def test_the_margin_is_a_factor_of_two_where_scores_are_logarithms(
    options: SimulationOptions, margin: float
) -> None:
    assert margin_of(options) == margin
    assert configure_pool(options).preempt_margin == margin


def test_an_unknown_base_policy_is_an_error() -> None:
    with pytest.raises(ValidationError):
        configure_pool(SimulationOptions("alphabetical"))
