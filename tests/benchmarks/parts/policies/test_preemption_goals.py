"""Goals of preemption by rank: met, not met or not measured."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.parts.policies.preemption import PreemptionCell
from benchmarks.parts.policies.preemption_goals import goals_of

CELL = PreemptionCell("helios_venus", 1800.0, 60.0, 0.0, "p", "fcfs", -0.5, -0.85, 0.01, 5, True)


def verdicts(*cells: PreemptionCell) -> list[str]:
    return [result.split(":")[0] for result in goals_of(cells).values()]


def test_all_goals_are_met_by_a_cell_that_is_good_enough() -> None:
    assert verdicts(CELL) == ["met"] * 6 + ["not measured"]


def test_each_goal_has_a_figure_that_misses_it() -> None:
    fixed = replace(CELL, fixed_share=0.9, trace="philly")
    assert verdicts(replace(CELL, lost_share=0.021))[1] == "not met"
    assert verdicts(replace(CELL, max_starts=21))[2] == "not met"
    assert verdicts(CELL, replace(fixed, wait_vs_best_nonpreemptive=0.04))[3:5] == [
        "not met",
        "met",
    ]
    assert verdicts(replace(CELL, wait_vs_best_nonpreemptive=-0.1))[3:5] == ["met", "not met"]
    assert verdicts(replace(CELL, wait_vs_skip_fcfs=-0.79))[5] == "not met"
    assert verdicts(fixed)[4:6] == ["not measured", "not measured"]


def test_a_bad_setting_is_made_up_for_by_the_others_of_its_trace_and_share() -> None:
    worse = replace(CELL, restart_s=600.0, wait_vs_best_nonpreemptive=0.04)
    assert verdicts(CELL, worse)[3:5] == ["met", "met"]


def test_a_run_that_does_not_end_meets_nothing_that_needs_its_end() -> None:
    endless = replace(CELL, wait_vs_best_nonpreemptive=None, wait_vs_skip_fcfs=None, ended=False)
    assert verdicts(CELL, endless) == [
        "not met",
        "met",
        "met",
        "not met",
        "not met",
        "not met",
        "not measured",
    ]


def test_the_network_is_compared_with_gittins_cell_by_cell() -> None:
    gittins = replace(CELL, policy="gittins", wait_vs_best_nonpreemptive=-0.5)
    for gain, expected in ((-0.55, "met: -10.0%"), (-0.5, "not met: +0.0%")):
        network = replace(CELL, policy="learned:berth", wait_vs_best_nonpreemptive=gain)
        assert list(goals_of([gittins, network]).values())[-1] == expected
