"""The simulated mitigation: its accounts, and the aims on seeds that chose no constant."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.durations import Survival
from services.failslow.core.mitigation.policy import lost_share
from simulator.failslow.faults import DrawnFault
from simulator.failslow.mitigation import (
    LONG_SEEDS,
    SHORT_SEEDS,
    FaultRun,
    endured_s,
    figures,
    measure,
    optimum,
    options_of,
)
from simulator.failslow.policies import POLICIES, always_restart, at_once, nothing

SLOW_GPU = DrawnFault(1000, 0.5, is_compute=True)
NEW = Survival.of([])


def test_doing_nothing_loses_what_the_fault_takes() -> None:
    result = FaultRun(SLOW_GPU).result(nothing, NEW)
    assert result.lost_s == pytest.approx(endured_s(SLOW_GPU)) == pytest.approx(1000 / 3)
    assert result.ended


def test_a_restart_ends_the_loss_and_hides_the_end() -> None:
    result = FaultRun(SLOW_GPU).result(always_restart, NEW)
    assert result.lost_s == pytest.approx(18 * lost_share(0.5) + 300)
    assert (result.ended, result.dearest_s) == (False, 300)


def test_a_level_leaves_its_rest() -> None:
    left = options_of(SLOW_GPU)[0].remaining
    result = FaultRun(SLOW_GPU).result(at_once, NEW)
    expected_s = 18 * lost_share(0.5) + 5 + (1000 - 18 - 5) * lost_share(left)
    assert result.lost_s == pytest.approx(expected_s)


def test_no_policy_saves_more_than_the_optimum() -> None:
    seeds = range(3)
    for policy in POLICIES.values():
        assert measure("long", seeds, policy).removed <= optimum("long", seeds)


def test_the_order_of_the_policies_is_that_of_the_page() -> None:
    """The cheap ones are measured here; `rows` has all."""
    shares = {
        name: (measure("long", LONG_SEEDS, policy), measure("short", SHORT_SEEDS, policy))
        for name, policy in POLICIES.items()
        if name != "berth"
    }
    long = sorted(shares, key=lambda name: shares[name][0].removed)
    short = sorted(shares, key=lambda name: shares[name][1].removed)
    assert long == ["always_restart", "ski_rental", "at_once"]
    assert short == ["always_restart", "at_once", "ski_rental"]


@pytest.mark.parts
def test_the_aims() -> None:
    measured = figures()
    assert 0.75 <= measured["long"] <= measured["optimum_long"]
    assert 0.15 <= measured["short"] <= measured["optimum_short"]
    assert measured["worst_fault"] <= 1
