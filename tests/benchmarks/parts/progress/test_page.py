"""The page of reported iterations."""

from __future__ import annotations

from benchmarks.parts.progress.cells import ProgressCell
from benchmarks.parts.progress.page import render_page


def cell(setting: str, low: float, high: float) -> dict[str, object]:
    gains = {"philly#1": [-0.1, 0.05]}
    return ProgressCell(
        "philly", setting, 1234, 120.0, 90.0, -0.25, low, high, gains, 0.5, 0.01, 0.0234
    ).plain()


RESULT = {"jobs": 3000, "seeds": 2, "cells": [cell("gittins", -0.3, -0.1), cell("easy", 0.1, 0.2)]}


def test_goals_and_cells_are_tables() -> None:
    page = render_page(RESULT)
    assert "| reports shorten waits | met in 1 of 2 | philly easy |" in page
    assert "| reports do not lengthen waits | met in 1 of 2 | philly easy |" in page
    assert (
        "| philly | gittins | 1,234 | 2.0 -> 1.5 min | -25.0% [-30.0%..-10.0%] | -10.0%..+5.0% "
        "| 50% | 1.00% -> 2.34% |" in page
    )
