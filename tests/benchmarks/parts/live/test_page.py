"""The section of a live day says what was measured, and stays at the end of its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.live.page import TITLE, add_section, goals_of, render_section, write_files

FIGURES = {
    "jobs_ended": 10,
    "stops": 3,
    "most_starts": 2,
    "lost_share": 0.0123,
    "mean_wait_s": 1062.9,
    "span_s": 9e4,
}


def a_result(**changes: Any) -> dict[str, Any]:
    result: dict[str, Any] = {
        "settings": {
            "trace": "helios_venus",
            "day": 54,
            "jobs": 10,
            "left_out": 2,
            "left_out_longer_than_h": 8.0,
            "gpus": 72,
            "load": 0.9,
            "time_scale": 300.0,
            "broker": "embedded",
            "cluster": {"checkpoint_s": 1800.0, "restart_s": 60.0},
            "wall": {"round_ms": 100},
        },
        "runs": {
            "kernel": FIGURES,
            "deciders": FIGURES,
            "deciders_with_handovers": {
                name: [value, value + 1] for name, value in FIGURES.items()
            },
            "live": FIGURES,
        },
        "difference": {"stops": -28, "mean_wait_s": 358.2},
        "wait_by_cause_s": {"rounds": 101.0, "handovers": 200.4, "rest": -3.0},
        "within_handovers": {"stops": True, "mean_wait_s": False},
        "latency": {"handover_wall_ms": 259.4, "handover_cluster_s": 77.8, "draws": 20},
        "process": {
            "stopped_by": "outranked",
            "checkpoint_step": 120,
            "stopped_at_step": 135,
            "steps_done_again": 15,
            "steps_missing": 0,
            "is_resumed": True,
        },
        "violations": [],
        "wall_s": 377.2,
        **changes,
    }
    return {**result, "goals": goals_of(result, 10)}


def test_every_goal_is_met_by_such_a_day() -> None:
    assert [text.partition(":")[0] for text in a_result()["goals"].values()] == ["met"] * 5


@pytest.mark.parametrize(
    ("live", "more"),
    [
        ({"jobs_ended": 9}, {}),
        ({"lost_share": 0.021}, {}),
        ({"most_starts": 21}, {}),
        ({}, {"violations": ["gang: 0/1: half"]}),
        ({}, {"process": {**a_result()["process"], "is_resumed": False}}),
        ({}, {"process": {**a_result()["process"], "stopped_by": "higher_class"}}),
    ],
)
def test_each_goal_can_be_missed(live: dict[str, Any], more: dict[str, Any]) -> None:
    runs = {**a_result()["runs"], "live": {**FIGURES, **live}}
    verdicts = [text.partition(":")[0] for text in a_result(runs=runs, **more)["goals"].values()]
    assert verdicts.count("not met") == 1


def test_the_section_has_each_run_and_names_what_latency_does_not_explain() -> None:
    text = " ".join(render_section(a_result()).split())
    assert "| live | 10 | 3 | 2 | 1.23% | 1,063 s |" in text
    assert "| 10 to 11 | 3 to 4 | 2 to 3 |" in text
    assert "+101 s are of the second row" in text and "-3 s are left" in text
    assert "`stops` lie in its range, and `mean_wait_s` do not" in text
    assert "`checkpoint_s` 1800, `restart_s` 60 (greedy" in text
    assert "In wall time, not sped up: `round_ms` 100" in text


def test_the_section_is_written_once_at_the_end_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "preemption.md"
    page.write_text("# Preemption\n\n| a |\n")
    write_files(tmp_path, a_result())
    write_files(tmp_path, a_result(wall_s=999.0))
    assert json.loads((tmp_path / "live_day.json").read_text())["wall_s"] == 999.0
    text = page.read_text()
    assert text.startswith("# Preemption\n\n| a |\n\n## ") and text.count(TITLE) == 1
    assert "999 s" in text and "377 s" not in text
    page.write_text("# Preemption anew\n")
    add_section(tmp_path)
    assert page.read_text().startswith(f"# Preemption anew\n\n{TITLE}\n")


def test_without_a_live_day_the_page_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "preemption.md").write_text("# Preemption\n")
    add_section(tmp_path)
    assert (tmp_path / "preemption.md").read_text() == "# Preemption\n"
