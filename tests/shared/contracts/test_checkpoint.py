"""The work that a preempted attempt keeps, in whole wall milliseconds."""

from __future__ import annotations

import pytest

from shared.contracts.checkpoint import kept_ms, restart_ms
from shared.contracts.jobs import JobSpec, Simulated


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
