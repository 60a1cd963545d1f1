"""Goals of `berth bench fragmentation` are computed from its figures; its page has them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.schedulers.fragmentation import (
    POLICIES,
    PUBLISHED,
    SAMPLES,
    VARIANTS,
    goals_of,
    measure,
)
from benchmarks.parts.schedulers.fragmentation_page import render_page
from benchmarks.parts.schedulers.over_seeds import gain_of, interval
from tests.simulator.gpu_parts.test_openb import NODES, PODS


def rows_with(fgd: float, best_fit: float) -> dict[str, Any]:
    """Return the figures of both clusters, with the same of all other policies."""
    means = dict.fromkeys(POLICIES, best_fit) | {"fgd": fgd}
    row = {
        name: {str(at): interval([mean - 0.1, mean, mean + 0.1]) for at in SAMPLES}
        for name, mean in means.items()
    }
    return {cluster: {"default": row} for cluster in ("gpu_nodes", "all_nodes")}


@pytest.mark.parametrize(
    ("fgd", "best_fit", "at_most", "below"),
    [(4.5, 7.0, True, True), (4.7, 7.0, False, True), (4.5, 5.0, True, False)],
)
def test_goals_compare_means(fgd: float, best_fit: float, at_most: bool, below: bool) -> None:
    """The published figures are 4.77 at 100 % and 4.61 at 130 %; a goal holds at both."""
    ours = rows_with(fgd, best_fit)
    gain = {
        cluster: {
            str(at): gain_of(rows["default"]["best_fit"][str(at)], rows["default"]["fgd"][str(at)])
            for at in SAMPLES
        }
        for cluster, rows in ours.items()
    }
    goals = goals_of(ours, gain)
    assert goals["gpu_nodes_at_most_fgd_published"] is at_most
    assert goals["gpu_nodes_20_percent_below_best_fit"] is below


def test_a_small_trace_is_measured_and_rendered(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "nodes.csv").write_text(NODES + "n2,64000,262144,2,T4\n")
    result = measure(2, trace=str(tmp_path / "pods.csv"), nodes=str(tmp_path / "nodes.csv"))
    assert result["clusters"]["gpu_nodes"] == {"nodes": 2, "gpus": 10}
    assert set(result["ours"]["all_nodes"]["default"]) == set(POLICIES)
    page = render_page({**result, "bench": "fragmentation"})
    assert page.count("unallocated GPUs at most FGD's published") == 2
    assert page.count("best fit |") >= 2
    assert all(f"| {line}" in page for line in ("random |", "FGD, "))


def test_each_demand_has_published_figures() -> None:
    assert set(VARIANTS) == set(PUBLISHED)
    assert all(set(rows) <= set(POLICIES) for rows in PUBLISHED.values())
