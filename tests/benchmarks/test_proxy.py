"""Goals of `berth bench proxy` are computed from its figures, and its page has them all."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.proxy.goals import goals_of
from benchmarks.parts.proxy.loop_lag import quantiles_ms
from benchmarks.parts.proxy.measure import CONCURRENCIES, LoadCell, figures_of, ratio_of
from benchmarks.parts.proxy.page import NAMES, write_files
from benchmarks.parts.proxy.target import ProxyTarget
from benchmarks.proxy import PAIRS

KINDS = ("plain", "stream64")
WITHOUT_LITELLM = [name for name in NAMES if name != "litellm"]
CPU_MS = {"berth": 2.0, "aiohttp": 1.0, "aiohttp_append": 1.3, "litellm": 30.0, "direct": 0.0}


def cell(name: str, p50_ms: float = 3.0) -> LoadCell:
    cpu_ms = CPU_MS[name]
    added_ms = 0.0 if name == "direct" else p50_ms
    return LoadCell([cpu_ms, 1.1 * cpu_ms], [0.5, 0.5], [90.0, 95.0], [1 + added_ms] * 2, [9.0] * 2)


def a_result(*names: str, berth_ms: float = 2.0) -> dict[str, Any]:
    cells = {(name, kind, c): cell(name) for name in names for kind in KINDS for c in CONCURRENCIES}
    for key, value in cells.items():
        if key[0] == "berth":
            value.cpu_ms = [berth_ms, berth_ms]
    result: dict[str, Any] = {
        "rounds": 2,
        "cores": 2,
        "broker": "kafka",
        **{name: figures_of(cells, ProxyTarget(name, "", "")) for name in names},
        "ratios": {
            name: {kind: ratio_of(cells, *pair, kind) for kind in KINDS}
            for name, pair in PAIRS.items()
            if {*pair} <= {*names}
        },
        "litellm_missing": "left out",
        "litellm_version": "1.0",
    }
    return {**result, "goals": goals_of(result)}


@pytest.mark.parametrize(("berth_ms", "unmet"), [(2.0, 0), (2.9, 2), (4.0, 4)])
def test_goals_say_whether_they_are_met(berth_ms: float, unmet: int) -> None:
    goals = a_result(*NAMES, berth_ms=berth_ms)["goals"]
    assert sum(text.startswith("not met: ") for text in goals.values()) == unmet
    assert len(goals) == 4


def test_without_litellm_its_row_is_absent_and_the_page_says_why(tmp_path: Path) -> None:
    result = a_result(*WITHOUT_LITELLM)
    assert sum(text == "not measured: left out" for text in result["goals"].values()) == 2
    write_files(tmp_path, result)
    page = (tmp_path / "proxy.md").read_text()
    assert "LiteLLM's row is absent: left out." in page
    assert "| litellm |" not in page


def test_the_page_has_a_row_for_each_way(tmp_path: Path) -> None:
    result = a_result(*NAMES)
    assert result["berth"]["plain"]["added_p50_ms"] == 3.0
    write_files(tmp_path, result)
    page = (tmp_path / "proxy.md").read_text()
    assert all(page.count(f"| {name} |") == 3 for name in NAMES)
    assert "its CPU is 1.30 times that of bare aiohttp" in page


@pytest.mark.parametrize(("late_ms", "verdict"), [(25.0, "met"), (50.0, "not met")])
def test_the_lag_under_the_largest_bodies_is_beside_that_under_small_ones(
    tmp_path: Path, late_ms: float, verdict: str
) -> None:
    result = a_result(*WITHOUT_LITELLM)
    figures = {"bodies": 40, "served": 40, "looks": 99.0, "p50_ms": 5.0, "most_ms": 100.0}
    rows = {"largest": late_ms, "small": 10.0}
    result["loop_lag"] = {name: {**figures, "p99_ms": ms} for name, ms in rows.items()}
    result["goals"] = goals_of(result)
    (text,) = (text for name, text in result["goals"].items() if name.startswith("largest"))
    assert text == f"{verdict}: at most {late_ms:g} ms; under small ones 10 ms"
    write_files(tmp_path, result)
    assert "## Lag of the event loop" in (tmp_path / "proxy.md").read_text()


def test_quantiles_of_the_lag_are_bounds_of_buckets() -> None:
    lags = {0.001: 60.0, 0.025: 99.0, 0.5: 100.0, math.inf: 100.0}
    assert quantiles_ms(lags) == {"looks": 100.0, "p50_ms": 1.0, "p99_ms": 25.0, "most_ms": 500.0}
    assert quantiles_ms({})["looks"] == 0.0


@pytest.mark.parametrize(("left_ms", "verdict"), [(80.0, "met"), (250.0, "not met")])
def test_how_soon_an_engine_is_free_is_a_goal_and_a_row(
    tmp_path: Path, left_ms: float, verdict: str
) -> None:
    result = a_result(*WITHOUT_LITELLM)
    result["promptness"] = {
        "left": {"times": 20, "p50_ms": 9.0, "most_ms": left_ms},
        "revoked": {"times": 5, "p50_ms": 90.0, "most_ms": 400.0},
    }
    result["goals"] = goals = goals_of(result)
    assert goals["the engine is free at most 200 ms after a client left"].startswith(verdict)
    assert goals["a revoked key is refused after at most 5 s"] == "met: 400 ms at most"
    write_files(tmp_path, result)
    assert f"| left | 20 | 9.0 | {left_ms} |" in (tmp_path / "proxy.md").read_text()
