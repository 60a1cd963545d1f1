"""Episodes of gangs: their loss, when a plan is due, and what is learned from them."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.mitigation_state import LULL_S, MitigationState, OpenPlan
from services.failslow.core.mitigation.plan import OpenFault


def fault(number: int, slowdown: float = 0.5) -> OpenFault:
    return OpenFault(f"j/1/{number}/1", f"n{number}", "compute", slowdown)


def with_faults(*slowdowns: float) -> MitigationState:
    state = MitigationState()
    for number, slowdown in enumerate(slowdowns):
        state.open_fault("j", "acme", 1, fault(number, slowdown), 100)
    return state


def test_loss_is_that_of_the_worst_fault() -> None:
    state = with_faults(0.5, 0.25)
    assert state.episodes["j"].loss_at(130).lost_s == pytest.approx(10)
    state.close_fault("j", "j/1/0/1", 130, ended=True)
    assert state.episodes["j"].loss_at(180).lost_s == pytest.approx(20)


def test_a_plan_is_due_when_the_loss_has_reached_its_cost() -> None:
    state = with_faults(0.5)
    due_s = state.episodes["j"].due_s
    assert due_s is not None
    plan = state.due_plan("j")
    assert plan is not None
    assert plan.level == "redistribute"
    assert plan.accumulated_loss_s >= plan.cost_s
    assert state.episodes["j"].loss_at(due_s - 20).lost_s < plan.cost_s


def test_the_next_level_follows_the_one_that_was_planned() -> None:
    state = with_faults(0.5)
    plan = state.due_plan("j")
    assert plan is not None
    state.note_plan(OpenPlan("p1", "j", "acme", 1, plan), 120)
    following = state.due_plan("j")
    assert following is not None
    assert (following.level, following.node_ids) == ("migrate", ("n0",))
    state.note_plan(OpenPlan("p2", "j", "acme", 1, following), 500)
    assert state.due_plan("j") is None


def test_durations_and_health_outlive_the_episode() -> None:
    state = with_faults(0.5)
    state.close_fault("j", "j/1/0/1", 160, ended=True)
    state.close_fault("j", "j/1/0/1", 170, ended=True)
    assert not state.episodes
    assert state.durations.observed[0].duration_s == 60
    assert state.health["n0"].score(160) == pytest.approx(1 / 1.5, abs=1e-3)
    state.take_back("n0", "j/1/0/1", 170)
    assert state.health["n0"].score(170) == pytest.approx(1)


def flapping(turns: int, well_s: float = 10.0, node: int = 0, attempt: int = 1) -> MitigationState:
    """A fault that is there for 10 s, and gone for `well_s`, so many times; then it is there."""
    state = MitigationState()
    for turn in range(turns + 1):
        own = OpenFault(f"j/1/0/{turn}", "n0", "compute", 1.0)
        at_s = turn * (10 + well_s)
        if turn == turns:
            own = OpenFault(f"j/{attempt}/{node}/{turn}", f"n{node}", "compute", 1.0)
            state.open_fault("j", "acme", attempt, own, at_s)
        else:
            state.open_fault("j", "acme", 1, own, at_s)
            state.close_fault("j", own.fault_id, at_s + 10, ended=True)
    return state


def test_a_fault_that_comes_and_goes_costs_as_one_that_stays() -> None:
    """Half of 10 s is lost in each turn; a migration costs 120 s, and twice that is overdue."""
    state = flapping(turns=60)
    assert state.episodes["j"].loss_at(1200).lost_s == pytest.approx(300)
    plan = state.due_plan("j")
    assert plan is not None and state.episodes["j"].due_s == 1200
    assert plan.level == "migrate"
    assert "300 s before it recovered for a while" in plan.evidence[1]
    assert state.lost_by_s("j", "j/1/0/60", 1210) == pytest.approx(5)


@pytest.mark.parametrize(
    ("well_s", "node", "attempt"), [(LULL_S + 1, 0, 1), (10.0, 1, 1), (10.0, 0, 2)]
)
def test_a_fault_much_later_or_elsewhere_is_another_one(
    well_s: float, node: int, attempt: int
) -> None:
    state = flapping(60, well_s, node, attempt)
    assert state.episodes["j"].lost_s == 0


def test_what_an_operator_dismissed_or_an_attempt_has_lost_is_no_lull() -> None:
    for ended in (True, False):
        state = with_faults(0.5)
        state.close_fault("j", "j/1/0/1", 160, ended=ended)
        assert ("j" in state.lulls) is ended
        state.end_gang("j", 170)
        assert not state.lulls


def levels_due(state: MitigationState) -> list[str]:
    """Return the levels that are planned for the job one after another."""
    levels: list[str] = []
    while (plan := state.due_plan("j")) is not None:
        levels.append(plan.level)
        at_s = state.episodes["j"].due_s
        assert at_s is not None
        state.note_plan(OpenPlan(f"p{len(levels)}", "j", "acme", 1, plan), at_s)
    return levels


def test_levels_that_have_not_paid_for_themselves_and_the_next_cost_no_more_than_one() -> None:
    """The dearest level is a restart, of 300 s; a migration is 120 s, advice 5 s."""

    def after(costs_s: float, healthy_s: float) -> list[str]:
        state = MitigationState()
        state.deficits.charge("j", costs_s, 0.5, 0)
        state.open_fault("j", "acme", 2, fault(0), healthy_s)
        return levels_due(state)

    assert after(170, 0) == ["redistribute", "migrate"]
    assert after(240, 0) == ["redistribute"]
    assert after(300, 0) == []
    assert after(240, 240) == ["redistribute", "migrate"], "a third of each second was saved"


def test_unknown_ids_change_nothing() -> None:
    state = MitigationState()
    state.take_back("n", "f", 1)
    state.end_plan("p")
    state.close_fault("j", "f", 1, ended=True)
    assert state == MitigationState()


def test_a_fault_of_another_node_between_turns_takes_nothing_from_their_loss() -> None:
    state = MitigationState()
    for turn, node in enumerate(("n0", "n1", "n0", "n1", "n0")):
        own = OpenFault(f"j/1/0/{turn}", node, "compute", 1.0)
        state.open_fault("j", "acme", 1, own, turn * 20)
        lost_s = state.episodes["j"].lost_s
        assert lost_s == pytest.approx(5 * (turn // 2)), "half of each turn of the same node"
        state.close_fault("j", own.fault_id, turn * 20 + 10, ended=True)
    assert [lull.node_ids for lull in state.lulls["j"]] == [("n1",), ("n0",)]
