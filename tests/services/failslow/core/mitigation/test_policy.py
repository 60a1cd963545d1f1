"""The choice of a level: break-even, learned durations, and the guard for the worst case."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from services.failslow.core.mitigation.durations import ObservedFault, Survival
from services.failslow.core.mitigation.policy import (
    Option,
    Situation,
    break_even,
    choose,
    lost_share,
)
from shared.contracts.mitigation import LevelName

CHEAP = Option("redistribute", 5, 0.1)
DEAR = Option("restart", 300, 0.0)
NEW = Survival.of([])
LONG = Survival.of([ObservedFault(7200)] * 50)
SHORT = Survival.of([ObservedFault(60)] * 50)


def chosen(situation: Situation, survival: Survival) -> LevelName:
    return choose(situation, [CHEAP, DEAR], survival, DEAR.cost_s).level


def test_with_few_faults_a_level_waits_until_its_cost_is_lost() -> None:
    assert chosen(Situation(10, 0.5, lost_s=4), NEW) == "nothing"
    assert chosen(Situation(10, 0.5, lost_s=5), NEW) == "redistribute"


def test_of_two_levels_that_are_due_the_better_one_is_applied() -> None:
    assert chosen(Situation(900, 0.5, lost_s=300), NEW) == "restart"


def test_long_faults_are_answered_at_once_and_short_ones_not_by_a_restart() -> None:
    fresh = Situation(15, 0.5, lost_s=5)
    assert choose(fresh, [DEAR], LONG, 300).level == "restart"
    assert choose(fresh, [DEAR], SHORT, 300).level == "nothing"
    assert choose(Situation(15, 0.5, lost_s=2), [CHEAP], SHORT, 300).level == "redistribute"


def test_a_fault_that_outlasts_all_others_is_answered_when_twice_the_cost_is_lost() -> None:
    overdue = choose(Situation(1800, 0.5, lost_s=601), [DEAR], SHORT, 300)
    assert overdue.level == "restart"


def test_the_guard_blocks_a_level_while_others_have_not_paid_for_themselves() -> None:
    situation = Situation(900, 0.5, lost_s=400, deficit_s=5, applied=("redistribute",))
    assert choose(situation, [CHEAP, DEAR], NEW, 300).rule == "guard"
    paid = Situation(900, 0.5, lost_s=400, deficit_s=-5, applied=("redistribute",))
    assert choose(paid, [CHEAP, DEAR], NEW, 300).level == "restart"


def test_a_level_that_leaves_as_much_is_not_applied() -> None:
    useless = Option("redistribute", 5, 0.5)
    choice = choose(Situation(900, 0.5, lost_s=400), [useless], NEW, 300)
    assert (choice.level, choice.rule) == ("nothing", "no level helps")


def test_the_expected_gain_is_beside_enduring_the_fault() -> None:
    choice = choose(Situation(15, 0.5, lost_s=5), [DEAR], LONG, 300)
    assert 0.8 * 7200 / 3 < choice.expected_gain_s + 300 < 1.2 * 7200 / 3


def test_break_even_takes_the_multiple_of_the_cost() -> None:
    situation = Situation(60, 0.5, lost_s=9)
    assert break_even(situation, [CHEAP, DEAR]) == CHEAP
    assert break_even(situation, [CHEAP, DEAR], 2) is None


@dataclass
class Course:
    """A fault that changes its severity, mitigated by levels that help as they like."""

    helps: dict[LevelName, float]
    lost_s: float = 0.0
    endured_s: float = 0.0
    elapsed_s: float = 0.0
    applied: list[LevelName] = field(default_factory=list)

    def pass_by(self, span_s: float, severity: float) -> None:
        left = min([1.0, *(self.helps[level] for level in self.applied)])
        self.elapsed_s += span_s
        self.lost_s += span_s * lost_share(severity * left)
        self.endured_s += span_s * lost_share(severity)


LEVEL_COSTS: dict[LevelName, float] = {"redistribute": 5, "rearrange": 60, "restart": 300}


@given(
    st.lists(st.tuples(st.floats(1, 400), st.floats(0, 3)), min_size=1, max_size=40),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.lists(st.floats(1, 5000), max_size=12),
)
def test_no_fault_costs_more_than_doing_nothing_and_one_level(
    course: list[tuple[float, float]], left: list[float], durations: list[float]
) -> None:
    """Whatever the severity does, however little levels help, and whenever the fault ends."""
    survival = Survival.of(map(ObservedFault, durations))
    fault = Course(dict(zip(LEVEL_COSTS, left, strict=True)))
    for span_s, severity in course:
        fault.pass_by(span_s, severity)
        options = [Option(name, cost, 0.2 * severity) for name, cost in LEVEL_COSTS.items()]
        deficit_s = fault.lost_s - fault.endured_s
        situation = Situation(
            fault.elapsed_s, severity, fault.lost_s, deficit_s, tuple(fault.applied)
        )
        level = choose(situation, options, survival, 300).level
        if level != "nothing":
            fault.lost_s += LEVEL_COSTS[level]
            fault.applied.append(level)
        assert fault.lost_s <= fault.endured_s + max(LEVEL_COSTS.values()) + 1e-6
