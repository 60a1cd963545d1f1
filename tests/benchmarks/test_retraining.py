"""`berth bench retraining`: cells, goals and page."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.parts.retraining.goals import dominates
from benchmarks.parts.retraining.page import render_page
from benchmarks.retraining import PERIODS_S, TARGETS_S, RetrainingOptions, run


@pytest.mark.slow
def test_a_run_has_a_row_per_policy_and_a_page() -> None:
    result = asyncio.run(run(RetrainingOptions(quick=True), lambda line: None))
    cells = result["cells"]
    assert isinstance(cells, dict)
    (rows,) = cells.values()
    assert len(rows) == 2 + len(PERIODS_S) + len(TARGETS_S)
    page = render_page(result)
    assert all(f"\n| {policy} |" in page for policy in rows)


def test_a_point_dominates_if_neither_figure_is_larger() -> None:
    best, other = ({"ttft_p99_s": 1.0, "mean_gap": gap} for gap in (0.1, 0.2))
    assert dominates(best, other) and dominates(best, best)
    assert not dominates(other, best)


def test_bad_options_are_errors() -> None:
    with pytest.raises(ValueError, match="seeds: 0; 1 or more"):
        asyncio.run(run(RetrainingOptions(seeds=0), lambda line: None))
