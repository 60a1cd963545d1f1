"""Metrics of watched gangs and open faults."""

from __future__ import annotations

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from services.failslow.figures import figures
from shared.contracts.faults import FaultCleared
from tests.harness.decider import AT, fold, given
from tests.services.failslow.core.test_decide import suspected
from tests.services.failslow.gangs import POOL, gang, watched


def values(state: FailSlowState) -> dict[str, float]:
    return {name: value for name, value, _ in figures(state, AT)}


def test_a_fault_is_open_until_it_is_cleared() -> None:
    state = given(FailSlow(), POOL, watched(gang()), suspected())
    assert values(state) == {"berth_gangs_watched": 1, "berth_faults_open": 1}
    cleared = FaultCleared(fault_id=suspected().fault_id, job_id="j1", reason="recovered")
    fold(FailSlow(), state, [cleared])
    assert values(state) == {"berth_gangs_watched": 1, "berth_faults_open": 0}


def test_a_lane_without_a_pool_has_no_figures() -> None:
    assert list(figures(FailSlowState(0), AT)) == []
