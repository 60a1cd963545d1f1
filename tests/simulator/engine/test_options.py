"""Options of a simulation and the pool settings that they become."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.contracts.access import LOG_SCORE_MARGIN, default_of
from simulator.engine.options import SimulationOptions, configure_pool, margin_of

SHARED = (
    "runtime",
    "queue_mode",
    "preemption",
    "min_residency_s",
    "preempt_margin",
    "large_gang_share",
    "defragment_after_s",
)


@pytest.mark.parametrize("setting", SHARED)
def test_a_simulated_pool_has_the_defaults_of_the_contract(setting: str) -> None:
    pool = configure_pool(SimulationOptions())
    assert getattr(pool, setting) == default_of(setting)


@pytest.mark.parametrize(
    ("options", "margin"),
    [
        (SimulationOptions("fcfs"), 0.0),
        (SimulationOptions("gittins"), LOG_SCORE_MARGIN),
        (SimulationOptions("srsf"), LOG_SCORE_MARGIN),
        (SimulationOptions("fcfs", learned="berth"), LOG_SCORE_MARGIN),
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
