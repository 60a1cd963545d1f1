"""Episodes of gangs: their loss, when a plan is due, and what is learned from them."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.care import Care, OpenPlan
from services.failslow.core.mitigation.plan import OpenFault


def fault(number: int, slowdown: float = 0.5) -> OpenFault:
    return OpenFault(f"j/1/{number}/1", f"n{number}", "compute", slowdown)


def with_faults(*slowdowns: float) -> Care:
    care = Care()
    for number, slowdown in enumerate(slowdowns):
        care.open_fault("j", "acme", 1, fault(number, slowdown), 100)
    return care


def test_loss_is_that_of_the_worst_fault() -> None:
    care = with_faults(0.5, 0.25)
    assert care.episodes["j"].loss_at(130).lost_s == pytest.approx(10)
    care.close_fault("j", "j/1/0/1", 130, ended=True)
    assert care.episodes["j"].loss_at(180).lost_s == pytest.approx(20)


def test_a_plan_is_due_when_the_loss_has_reached_its_cost() -> None:
    care = with_faults(0.5)
    due_s = care.episodes["j"].due_s
    assert due_s is not None
    plan = care.due_plan("j")
    assert plan is not None
    assert plan.level == "redistribute"
    assert plan.accumulated_loss_s >= plan.cost_s
    assert care.episodes["j"].loss_at(due_s - 20).lost_s < plan.cost_s


def test_the_next_level_follows_the_one_that_was_planned() -> None:
    care = with_faults(0.5)
    plan = care.due_plan("j")
    assert plan is not None
    care.note_plan(OpenPlan("p1", "j", "acme", 1, plan), 120)
    following = care.due_plan("j")
    assert following is not None
    assert (following.level, following.node_ids) == ("migrate", ("n0",))
    care.note_plan(OpenPlan("p2", "j", "acme", 1, following), 500)
    assert care.due_plan("j") is None


def test_durations_and_health_outlive_the_episode() -> None:
    care = with_faults(0.5)
    care.close_fault("j", "j/1/0/1", 160, ended=True)
    care.close_fault("j", "j/1/0/1", 170, ended=True)
    assert not care.episodes
    assert care.durations.observed[0].duration_s == 60
    assert care.health["n0"].score(160) == pytest.approx(1 / 1.5, abs=1e-3)
    care.take_back("n0", "j/1/0/1", 170)
    assert care.health["n0"].score(170) == pytest.approx(1)


def test_unknown_ids_change_nothing() -> None:
    care = Care()
    care.take_back("n", "f", 1)
    care.end_plan("p")
    care.close_fault("j", "f", 1, ended=True)
    assert care == Care()
