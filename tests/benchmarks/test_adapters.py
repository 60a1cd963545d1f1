"""`berth bench adapters`: baselines, errors, goals and page."""

from __future__ import annotations

from benchmarks.adapters import scenario_row
from benchmarks.parts.adapters.accuracy import measured_rows, memory_agreement, smape
from benchmarks.parts.adapters.baselines import BASELINES, engines_needed
from benchmarks.parts.adapters.goals import goals_of
from benchmarks.parts.adapters.page import render_page
from benchmarks.parts.adapters.scenarios import COUNTS, grid, servegen
from simulator.llm.adapters.plan import Packer


def test_scenarios_are_the_same_for_a_seed_and_absent_traces_give_none() -> None:
    assert [len(scenario.loads) for scenario in grid(1)] == list(COUNTS)
    assert list(grid(1)) == list(grid(2))[: len(COUNTS)]
    assert list(servegen(None)) == []


def test_every_baseline_places_every_adapter() -> None:
    scenario = next(grid(1))
    for name, place in BASELINES.items():
        placed = [load for loads in place(scenario.loads, 3) for load in loads]
        assert sorted(load.adapter for load in placed) == [load.adapter for load in scenario.loads]
        assert engines_needed(Packer(scenario.engine), name, scenario.loads, 1) >= 1


def test_the_rule_of_memory_holds_for_all_real_runs() -> None:
    agreed, runs = memory_agreement(measured_rows())
    assert agreed == runs == 327


def test_errors_are_symmetric_parts() -> None:
    assert smape([(1.0, 1.0), (3.0, 1.0), (1.0, 3.0)]) == 2 / 3
    assert smape([]) == 0


def test_goals_and_page_have_the_figures_of_a_run() -> None:
    row = scenario_row(next(grid(1)))
    assert row["lower_bound"] <= row["planned"] <= min(row[name] for name in BASELINES)
    twin = {"served_runs": 1, "served_smape": 0.06, "overloaded_runs": 0, "overloaded_smape": 0.0}
    result = {
        "headroom": 0.2,
        "scenarios": [row],
        "memory_rule": {"agreed": 1, "runs": 1},
        "twin": twin,
        "capacity_ratios": [0.8, 1.1],
        "estimate_smape": 0.05,
    }
    goals = goals_of(result)
    assert sum(text.startswith("not met") for text in goals.values()) == 2
    page = render_page({**result, "goals": goals})
    assert f"| {row['scenario']} |" in page
