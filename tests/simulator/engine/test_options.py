"""Options of a simulation and the pool settings that they become."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.contracts.pools import LOG_SCORE_MARGIN, default_of
from simulator.engine.options import SimulationOptions, build_scenario, configure_pool, margin_of
from simulator.engine.scenario import submission
from tests.simulator.kernel.workloads import mixed

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


def test_the_protection_and_the_kinds_of_jobs_reach_the_scenario() -> None:
    options = SimulationOptions(
        nodes=1, preemption_protection="progress", loss_share=0.02, fixed_share=1.0
    )
    scenario, _ = build_scenario(mixed(3, 1), options)
    assert scenario.pool.preemption_protection == "progress"
    assert scenario.pool.loss_share == 0.02
    assert not any(submission(scenario, index).spec.preemptible for index in range(3))
