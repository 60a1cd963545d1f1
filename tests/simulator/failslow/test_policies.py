"""The baselines do as they are named."""

from __future__ import annotations

from services.failslow.core.mitigation.durations import Survival
from services.failslow.core.mitigation.policy import Option, Situation
from simulator.failslow.policies import always_restart, at_once, berth, nothing, ski_rental

OPTIONS = (Option("rearrange", 60, 0.1), Option("restart", 300, 0.0))
NEW = Survival.of([])


def test_baselines() -> None:
    fresh, later = Situation(15, 0.5, 5), Situation(200, 0.5, 61)
    assert always_restart(fresh, OPTIONS, NEW) == "restart"
    assert at_once(fresh, OPTIONS, NEW) == "rearrange"
    assert at_once(Situation(90, 0.1, 70, 60, ("rearrange",)), OPTIONS, NEW) == "nothing"
    assert nothing(later, OPTIONS, NEW) == "nothing"
    for policy in (ski_rental, berth):
        assert policy(fresh, OPTIONS, NEW) == "nothing"
        assert policy(later, OPTIONS, NEW) == "rearrange"
