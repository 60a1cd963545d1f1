"""The work that a preempted attempt keeps, in whole wall milliseconds."""

from __future__ import annotations

import pytest

from shared.contracts.checkpoint import MIN_SPEED, kept_ms, restart_ms, speed, spread_of
from shared.contracts.job_spec import JobSpec, Simulated, Spread

AT_THE_STOP = {"checkpoint_interval_s": 60, "checkpoint_cost_s": 9, "grace_s": 9}


@pytest.mark.parametrize(
    ("spec", "worked_ms", "kept"),
    [
        ({}, 500_000, 0),
        ({"checkpoint_interval_s": 60}, 59_999, 0),
        ({"checkpoint_interval_s": 60}, 60_000, 60_000),
        ({"checkpoint_interval_s": 60}, 179_999, 120_000),
        ({"checkpoint_interval_s": 3600, "checkpoint_cost_s": 60}, 179_999, 0),
        ({"checkpoint_interval_s": 3600, "checkpoint_cost_s": 60, "grace_s": 60}, 90_000, 30_000),
        ({"checkpoint_interval_s": 3600, "checkpoint_cost_s": 60, "grace_s": 60}, 30_000, 0),
        ({"checkpoint_interval_s": 60, "checkpoint_cost_s": 60, "grace_s": 60}, 90_000, 60_000),
        ({"checkpoint_cost_s": 60, "grace_s": 60}, 90_000, 0),
    ],
)
def test_kept_is_up_to_the_last_checkpoint(
    spec: dict[str, float], worked_ms: int, kept: int
) -> None:
    assert kept_ms(JobSpec.model_validate({"name": "x", **spec}), worked_ms, 1.0) == kept


def test_intervals_are_cluster_seconds_and_the_grace_is_wall_seconds() -> None:
    spec = JobSpec(name="x", checkpoint_interval_s=600, checkpoint_cost_s=120, grace_s=2)
    assert kept_ms(spec, 25_000, 60.0) == 23_000
    assert kept_ms(spec, 25_000, 10.0) == 0
    assert restart_ms(JobSpec(name="x", simulated=Simulated(restart_s=90)), 60.0) == 1500


@pytest.mark.parametrize(
    ("spec", "worked_ms", "reported_ms", "kept"),
    [
        ({}, 500_000, 90_000, 90_000),
        ({"checkpoint_interval_s": 60}, 70_000, 65_000, 65_000),
        ({"checkpoint_interval_s": 60}, 184_999, 65_000, 65_000),
        ({"checkpoint_interval_s": 60}, 185_000, 65_000, 185_000),
        ({"checkpoint_interval_s": 60}, 244_999, 65_000, 185_000),
        ({"checkpoint_interval_s": 60}, 5_000, 65_000, 5_000),
        (AT_THE_STOP, 99_000, 65_000, 90_000),
        (AT_THE_STOP, 66_000, 65_000, 65_000),
    ],
)
def test_a_reported_checkpoint_counts_and_intervals_once_two_have_passed(
    spec: dict[str, float], worked_ms: int, reported_ms: int, kept: int
) -> None:
    parsed = JobSpec.model_validate({"name": "x", **spec})
    assert kept_ms(parsed, worked_ms, 1.0, reported_ms) == kept


@pytest.mark.parametrize(
    ("nodes", "spread", "rate"),
    [("aa", None, 2.0), ("ab", "rack", 1.0), ("ac", "spine", 0.5), ("xy", "rack", 1.0)],
)
def test_a_gang_is_slower_over_the_links_that_it_declares(
    nodes: str, spread: Spread | None, rate: float
) -> None:
    spec = JobSpec(name="x", gpu_speeds={"v100": 2.0}, spread_speeds={"rack": 0.5, "spine": 0.25})
    links = spread_of(nodes, {"a": "r1", "b": "r1", "c": "r2"})
    assert links == spread
    assert speed(spec, 1, ["v100"], links) == rate


def test_a_declared_speed_has_a_least_value() -> None:
    tiny = 5e-324
    spec = JobSpec(name="x", gpu_speeds={"v100": tiny}, spread_speeds={"rack": tiny})
    assert speed(spec, 1, ["v100"], "rack") == MIN_SPEED
