"""Goals of `berth bench throttle` are computed from its figures, and its page has them all."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.parts.throttle.abuse import CELLS, abuse_row
from benchmarks.parts.throttle.arena import KEYS, POLICIES, arena_row
from benchmarks.parts.throttle.decider_speed import requests_per_s
from benchmarks.parts.throttle.goals import goals_of, known_goals, wait_goals
from benchmarks.parts.throttle.page import render_page
from benchmarks.parts.throttle.speed import decisions_per_s
from benchmarks.parts.throttle.wait_limit import waits_in_futures
from benchmarks.parts.throttle.waits import TwoApplications, wait_ratio, wait_ratio_of_known_lengths
from simulator.llm.traces import servegen_requests


def a_result(gap: float = 300.0, wait_s: float = 1.0) -> dict[str, Any]:
    row = dict(zip(KEYS, (800.0, 300.0, 9000, 850.0, 0), strict=True))
    cell = {"cut_midway": 0, "wasted_tokens": 0, "benign_p99_s": 5.0}
    abuse: dict[str, Any] = {name: {c: cell for c, _, _ in CELLS} for name in POLICIES}
    abuse["berth"] = {c: {**cell, "benign_p99_s": wait_s} for c, _, _ in CELLS}
    result: dict[str, Any] = {
        "trace": {"trace": "vtc_arena", "requests": 9, "tenants": 3},
        "seeds": 3,
        "arena": {name: row for name in POLICIES} | {"berth": {**row, "max_gap": gap}},
        "abuse": abuse,
        "abuse_per_s": 0.042,
        "abuse_lighter": {},
        "abuse_lighter_per_s": 0.035,
        "core_decisions_per_s": 120_000,
        "core_decisions_per_s_10000_tenants": 90_000,
        "decider_requests_per_s": {"4": 30_000, "100": 25_000},
        "wait_ratio": {"requests": 99, "p10": 0.9, "p50": 1.0, "p90": 1.2},
        "wait_ratio_applications": {"requests": 99, "p10": 0.7, "p50": 1.0, "p90": 1.6},
        "wait_ratio_known_lengths": {"requests": 99, "p10": 0.9, "p50": 1.0, "p90": 1.2},
        "wait_ratio_limit": {"requests": 99, "p10": 0.95, "p50": 1.0, "p90": 1.1},
    }
    return {**result, "goals": goals_of(result)}


@pytest.mark.parametrize(("gap", "wait_s", "unmet"), [(300.0, 1.0, 1), (500.0, 6.0, 3)])
def test_goals_say_whether_they_are_met(gap: float, wait_s: float, unmet: int) -> None:
    goals = a_result(gap, wait_s)["goals"]
    assert sum(text.startswith("not met") for text in goals.values()) == unmet
    assert all(text.startswith(("met: ", "not met: ")) for text in goals.values())


def test_the_page_has_a_row_for_each_policy() -> None:
    page = render_page(a_result())
    assert all(page.count(f"| {name} |") == 2 for name in POLICIES)


def test_rows_have_the_figures_of_their_tables() -> None:
    requests = servegen_requests(tenants=4, span_s=60, per_s=1)
    assert tuple(arena_row("berth", requests)) == KEYS
    cell = abuse_row("berth", "single", 8, 0.01, (0,))
    assert cell["cut_midway"] == cell["wasted_tokens"] == 0


def test_futures_of_a_request_differ_by_lengths_alone() -> None:
    waits_s = waits_in_futures(seed=0, number=30)
    assert len(set(waits_s)) > 1
    assert waits_s == waits_in_futures(seed=0, number=30)


def test_decisions_are_counted() -> None:
    assert decisions_per_s(5, 50) > 0


def test_requests_of_the_whole_decider_are_counted() -> None:
    assert requests_per_s(tenants=5, requests=80) > 0


def test_waits_before_answers_that_reach_their_limits_are_estimated_within_the_goal() -> None:
    ratio = wait_ratio_of_known_lengths((100,))
    (text,) = known_goals(ratio).values()
    assert text.startswith("met: "), ratio


def test_waits_follow_the_applications_of_those_ahead() -> None:
    """Answers of one application are nine times as long as those of the other."""
    ratio: dict[str, Any] = {**wait_ratio((100,), TwoApplications)}
    assert ratio["p90"] / ratio["p10"] < 2.5, ratio
    assert 0.9 < ratio["p50"] < 1.15, ratio


def test_the_goal_of_waits_says_how_near_any_estimate_can_come() -> None:
    ratio = {"p10": 0.74, "p50": 1.02, "p90": 1.42}
    (text,) = wait_goals(ratio, {"p10": 0.75, "p50": 1.0, "p90": 1.34}).values()
    assert text == "not met: 0.74 to 1.42, median 1.02; with lengths unknown at best 0.75 to 1.34"
