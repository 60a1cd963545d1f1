"""MACE dominates retraining in periods, and updates every user within the bound where it can."""

from __future__ import annotations

import pytest

from services.throttle.core.retraining import RetrainingLimits
from simulator.llm.retraining_study import RetrainingStudy
from simulator.llm.traces import servegen_requests

REQUESTS = servegen_requests(0, 12, 300, 0.5)
TARGETS_S = (0.06, 0.08, 0.1, 0.15)


@pytest.mark.slow
def test_for_every_period_a_point_of_mace_has_a_lower_wait_and_a_lower_gap() -> None:
    study = RetrainingStudy(REQUESTS)
    points = [
        RetrainingStudy(REQUESTS, RetrainingLimits(tpot_s=tpot_s)).run("mace")
        for tpot_s in TARGETS_S
    ]
    for period_s in (15, 30, 60, 120):
        periodic = study.run("periodic", period_s)
        assert any(
            point.ttft_p99_s <= periodic.ttft_p99_s and point.mean_gap <= periodic.mean_gap
            for point in points
        )


@pytest.mark.slow
def test_users_are_updated_within_the_bound_and_deadlines_are_met() -> None:
    study = RetrainingStudy(REQUESTS)
    mace, alone = study.run("mace"), study.run("serve_only")
    assert mace.worst_stale_s <= 1.1 * study.limits.freshness_s
    assert mace.attainment >= alone.attainment - 0.01
    assert mace.busy_ratio > 0.9
    assert mace.updates > 0 == alone.updates


def test_measures_are_the_same_for_the_same_seed() -> None:
    study = RetrainingStudy(servegen_requests(0, 4, 60, 0.5))
    assert study.run("mace") == study.run("mace")
