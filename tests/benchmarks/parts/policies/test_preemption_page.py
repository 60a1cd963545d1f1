"""The page of preemption by rank: a table per share, a row per trace and policy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from benchmarks.parts.policies.preemption import PreemptionCell
from benchmarks.parts.policies.preemption_means import MeanGain
from benchmarks.parts.policies.preemption_page import PLOT, render_page, write_files

CELL = PreemptionCell("philly", 600.0, 60.0, 0.0, "gittins", "qssf", -0.5, -0.6, 0.0123, 5, True)
OTHER = replace(CELL, restart_s=600.0, wait_vs_best_nonpreemptive=0.1, max_starts=9)


def test_a_row_has_each_cost_and_the_worst_of_them() -> None:
    page = render_page([CELL, OTHER, replace(CELL, fixed_share=0.9)])
    assert "| 600/60 | 600/600 | mean | lost | starts |" in page
    assert "| philly | gittins | qssf | -50% | +10% | -20% | 1.23% | 9 |" in page
    assert "## 90% of the jobs are never stopped by rank" in page


def test_a_mean_has_its_interval_where_one_is_known() -> None:
    mean = MeanGain("philly", 0.0, "gittins", -0.2, -0.31, -0.08)
    page = render_page([CELL, OTHER, replace(CELL, fixed_share=0.9)], means=[mean])
    assert "| -50% | +10% | -20% (-31% to -8%) | 1.23% | 9 |" in page
    assert "| -50% | -50% | 1.23% | 5 |" in page


def test_costs_that_each_job_draws_have_a_column_of_their_own() -> None:
    assert "| 600/60 | 600/60 drawn | mean |" in render_page(
        [CELL, replace(CELL, checkpoint_spread=1.0)]
    )


def test_a_run_that_does_not_end_is_named() -> None:
    endless = replace(OTHER, wait_vs_best_nonpreemptive=None, ended=False)
    assert "| -50% | endless | endless |" in render_page([CELL, endless])


def test_page_plot_and_figures_are_written(tmp_path: Path) -> None:
    endless = replace(OTHER, wait_vs_best_nonpreemptive=None, ended=False)
    cells = [CELL, endless, replace(CELL, fixed_share=0.9)]
    write_files(tmp_path / "new", {"cells": [cell.plain() for cell in cells]}, cells)
    assert json.loads((tmp_path / "new" / "preemption.json").read_text())["cells"]
    assert (tmp_path / "new" / "preemption.md").read_text().startswith("# Preemption by rank")
    assert "<svg" in (tmp_path / "new" / PLOT).read_text()
