from __future__ import annotations

from typing import get_args

from services.admission.figures import figures
from shared.contracts.admission import DeferReason
from tests.harness.decider import given
from tests.services.admission.core.cases import ADMISSION, NOW, pool, quota, submit, when


def test_jobs_are_counted_by_phase_and_defer_reason() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"), submit("j3"))
    gauges = {(name, *labels): value for name, value, labels in figures(state, NOW)}
    assert gauges["berth_admitted_jobs", "main"] == 1
    deferred = {
        reason: gauges["berth_deferred_jobs", "main", reason] for reason in get_args(DeferReason)
    }
    assert deferred == dict.fromkeys(get_args(DeferReason), 0) | {"quota": 2}


def test_a_lane_without_a_pool_has_no_gauges() -> None:
    assert list(figures(given(ADMISSION), NOW)) == []
