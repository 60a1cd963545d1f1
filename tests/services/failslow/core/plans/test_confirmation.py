"""A slow node is confirmed by something beside the reports of one tenant."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.plans.confirmation import CONFIRMS_S, is_confirmed, may_cordon
from services.failslow.core.state import FailSlowState
from shared.contracts.faults import MarkFalseAlarm
from tests.harness.decider import AT, an_input, given, run
from tests.services.failslow.gangs import POOL, iterated, placed

FAILSLOW = FailSlow()
HEALTHY, SLOW = [1.0] * 3, [1.5] * 3
NOW_S = AT / 1000


def suspected(tenant: str) -> FailSlowState:
    """A job of the tenant reports the node `n2` as slow."""
    state = given(FAILSLOW, POOL)
    run(FAILSLOW, state, [placed("j1", tenant=tenant)])
    run(FAILSLOW, state, [iterated(HEALTHY, HEALTHY, SLOW, HEALTHY)])
    return state


def test_a_tenant_does_not_confirm_itself() -> None:
    state = suspected("acme")
    assert not is_confirmed(state, "n2", "acme", NOW_S)
    assert is_confirmed(state, "n2", "zeta", NOW_S)
    assert not is_confirmed(state, "n0", "zeta", NOW_S)


def test_what_another_tenant_had_there_long_ago_confirms_nothing() -> None:
    state = suspected("acme")
    assert is_confirmed(state, "n2", "zeta", NOW_S + CONFIRMS_S)
    assert not is_confirmed(state, "n2", "zeta", NOW_S + CONFIRMS_S + 1)


def test_a_false_alarm_confirms_nothing() -> None:
    state = suspected("acme")
    command = MarkFalseAlarm(fault_id="j1/1/2/1")
    run(FAILSLOW, state, [an_input(command, "commands")])
    assert not is_confirmed(state, "n2", "zeta", NOW_S)


def test_gpu_problems_and_agreeing_measurements_confirm() -> None:
    state = given(FAILSLOW, POOL)
    state.gpu_problems.by_node["n1"] = {"gpu_slow": "GPU 0"}
    state.witnesses.note(["n2"], "acme", 0.0)
    assert is_confirmed(state, "n1", "acme", NOW_S)
    assert not is_confirmed(state, "n2", "acme", NOW_S)
    state.witnesses.note(["n2"], "", 0.0)
    assert is_confirmed(state, "n2", "acme", NOW_S)


@pytest.mark.parametrize(("most", "allowed"), [(1, True), (3, True), (4, False), (6, False)])
def test_half_of_the_share_and_one_node_at_least_rest_on_one_tenant(
    most: int, allowed: bool
) -> None:
    """Of shares of four and six the tenant holds its half already."""
    state = given(FAILSLOW, POOL)
    held = () if most < 4 else ("a", "b") if most == 4 else ("a", "b", "c")
    state.fleet.order("p", held, "acme")
    assert may_cordon(state, "acme", ["n1"], most, NOW_S) is allowed
    assert may_cordon(state, "zeta", ["n1"], most, NOW_S)
