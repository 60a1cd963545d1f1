from __future__ import annotations

import math

import numpy as np
import pytest

from services.admission.core.spot.guarantees import GuaranteeLog
from services.admission.core.spot.quota import SpotQuotaSettings
from simulator.spot.jobs import DAY_S, SpotTraceJob, organisation_shares
from simulator.spot.quotas import HISTORY_STEPS, STEP_S, SpotQuota, history_gpus
from simulator.spot.rules import PASSING, SpotRules, gfs

SETTINGS = SpotQuotaSettings()
ORGANISATIONS = len(organisation_shares())


def test_history_has_the_gpus_of_guaranteed_jobs_that_run() -> None:
    jobs = [
        SpotTraceJob(0, 0, False, 2, 8, -40.0 * DAY_S, 1e9),
        SpotTraceJob(1, 1, False, 1, 4, -600.0, 300.0),
        SpotTraceJob(2, 1, False, 1, 4, 600.0, 300.0),
        SpotTraceJob(3, -1, True, 1, 8, -600.0, 3600.0, 1),
    ]
    history = history_gpus(jobs)
    assert history.shape == (ORGANISATIONS, HISTORY_STEPS)
    assert set(history[0]) == {16.0}
    assert history[1].sum() == 4.0
    assert history[1, -600 // STEP_S] == 4.0


def renewed(rules: SpotRules, capacity: int = 1000) -> SpotQuota:
    """Return the quota at second 0 after a constant demand of 50 GPUs of each organisation."""
    level = np.full((ORGANISATIONS, HISTORY_STEPS), 50.0)
    quota = SpotQuota(rules, capacity, level, GuaranteeLog(SETTINGS.window_s))
    quota.renew(0.0, level[:, 0], 0.0)
    return quota


@pytest.mark.parametrize("source", ["static", "last_week", "forecast"])
def test_of_a_constant_demand_each_forecast_leaves_the_rest(source: str) -> None:
    quota = renewed(gfs(SETTINGS, source))  # type: ignore[arg-type]
    assert quota.by_hours == {hours: 1000 - 50 * ORGANISATIONS for hours in (1, 2, 3, 4)}


def test_without_a_quota_there_is_no_bound() -> None:
    assert renewed(PASSING).of(1) == math.inf


def test_a_pool_in_full_use_leaves_none() -> None:
    assert renewed(gfs(SETTINGS), capacity=500).of(1) == 0


def test_samples_go_on_over_a_midnight() -> None:
    quota = renewed(gfs(SETTINGS))
    for step in range(1, DAY_S // STEP_S + 2):
        quota.renew(float(step * STEP_S), np.full(ORGANISATIONS, 60.0), 0.0)
    assert quota.of(1) == pytest.approx(1000 - 60 * ORGANISATIONS, abs=2)
