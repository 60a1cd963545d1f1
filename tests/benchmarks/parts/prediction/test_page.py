"""The page of predictors: goals, errors and starts, a row per trace."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.parts.prediction.page import render_page

ERRORS = {"coverage": 0.803, "pinball_log10_s": 0.2}
STARTS = {
    "starts": 100,
    "coverage": 0.61,
    "coverage_ends": [0.5, 0.715],
    "coverage_uncalibrated": 0.5,
    "median_delay_s": 600.0,
    "median_width_s": 1200.0,
}


def trace(name: str, **more: Any) -> dict[str, Any]:
    return {
        "trace": name,
        "judged": 1234,
        "predictors": {"blind": ERRORS, "ours": ERRORS},
        "starts": "hardly any job waits",
        "starts_easy": STARTS,
        "starts_live": "hardly any job waits",
        "starts_live_easy": STARTS,
        "goals": {"coverage": "met"},
    } | more


def test_a_goal_names_the_traces_that_miss_it() -> None:
    traces = [trace("a"), trace("b", goals={"coverage": "not met"}), trace("c", goals={})]
    page = render_page({"traces": traces})
    assert "| coverage | met on 1 of 2 | b: not met |" in page


def test_only_predictors_that_were_measured_have_a_column() -> None:
    page = render_page({"traces": [trace("a", predictors={"blind": ERRORS}), trace("b")]})
    assert "| trace | judged jobs | blind | ours |" in page
    assert "| a | 1,234 | 80.3% | - |" in page and "| b | 1,234 | 0.2000 | 0.2000 |" in page


@pytest.mark.parametrize("engine", ["kernel", "live"])
def test_starts_have_a_row_per_engine_and_queue_mode(engine: str) -> None:
    page = render_page({"traces": [trace("a")]})
    assert f"| a | {engine} | skip | hardly any job waits |" in page
    assert f"| a | {engine} | easy | 100 | 61.0% [50.0%..71.5%] | 50.0% | 10 min | 20 min |" in page


def test_a_share_without_an_interval_stands_alone() -> None:
    page = render_page({"traces": [trace("a", starts_easy=STARTS | {"coverage_ends": None})]})
    assert "| a | kernel | easy | 100 | 61.0% | 50.0% | 10 min | 20 min |" in page
