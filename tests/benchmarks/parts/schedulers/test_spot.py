"""Goals of `berth bench spot` are computed from its figures; its page has them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.parts.schedulers.over_seeds import interval
from benchmarks.parts.schedulers.spot import (
    COMPARED,
    LOADS,
    RULES,
    gains,
    gains_of,
    goals_of,
    measure,
)
from benchmarks.parts.schedulers.spot_page import NAMES, render_page
from simulator.spot.nodes import MODEL


def rows_with(evictions: float, wait_s: float) -> dict[str, Any]:
    """Return the figures of both bases (10 % of evictions, 1,000 s) and of ours, of three seeds."""
    base = {"eviction_percent": 10.0, "spot_wait_s": 1000.0, "allocated_percent": 80.0}
    ours = {"eviction_percent": evictions, "spot_wait_s": wait_s, "allocated_percent": 78.0}
    return {
        name: {key: interval([value] * 3) for key, value in own.items()}
        for name, own in (("first_fit", base), ("first_fit_passing", base), ("ours", ours))
    }


@pytest.mark.parametrize(
    ("evictions", "wait_s", "met"),
    [(6.6, 550.0, (True, True)), (6.8, 550.0, (False, True)), (6.6, 570.0, (True, False))],
)
def test_goals_are_the_published_gains(
    evictions: float, wait_s: float, met: tuple[bool, bool]
) -> None:
    """Published are 33.0 % fewer evictions and 44.1 % less waiting."""
    gain = {"medium": gains(rows_with(evictions, wait_s))}
    assert gain["medium"]["first_fit"]["allocated_percent"]["mean"] == pytest.approx(-0.025)
    goals = goals_of(gain)["medium"]["first_fit"]
    assert (goals["eviction_percent"], goals["spot_wait_s"]) == met


def test_without_an_eviction_of_the_base_there_is_no_gain() -> None:
    rows = rows_with(0.0, 0.0)
    rows["first_fit"]["eviction_percent"] = interval([0.0] * 3)
    gain = gains(rows)["first_fit"]["eviction_percent"]
    assert gain == {"mean": 0.0, "low": 0.0, "high": 0.0}


def test_the_gain_over_all_is_the_mean_of_those_at_each_load() -> None:
    figures = {"low": rows_with(5.0, 500.0), "high": rows_with(9.0, 100.0)}
    gain = gains_of(figures)["all"]["first_fit"]
    assert gain["eviction_percent"] == {"mean": 0.3, "low": 0.3, "high": 0.3}
    assert gain["spot_wait_s"]["mean"] == 0.7


@pytest.mark.slow
def test_a_small_list_of_nodes_is_measured_and_rendered(tmp_path: Path) -> None:
    table = {"gpu_model": [MODEL] * 16, "gpu_capacity_num": [8] * 16}
    pq.write_table(pa.table(table), tmp_path / "nodes.parquet")
    result = measure(1, trace=str(tmp_path / "nodes.parquet"), days=3)
    assert (result["nodes"], result["gpus"]) == (16, 128)
    assert all(set(rows) == set(COMPARED) for rows in result["ours"].values())
    page = render_page({**result, "bench": "spot"})
    assert all(f"\n## {load.capitalize()} spot load\n" in page for load in LOADS)
    assert all(f"| {NAMES[name]} |" in page for name in COMPARED)


def test_each_of_the_rules_has_a_name() -> None:
    assert set(RULES) == set(NAMES)
