"""The figures of a soak's slices, without a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.chaos.slices import (
    begin_slice,
    goals_of,
    growth_mib_per_h,
    read_slices,
    write_slices,
)
from benchmarks.parts.soak.page import PLOT, draw, render_page


def a_slice(first_mib: float = 100.0, per_h: float = 0.0, **changes: Any) -> dict[str, Any]:
    """Return a slice of 40 minutes whose caches fill in its first minutes."""
    at_s = [10.0 * n for n in range(241)]
    filling = [min(at / 600, 1.0) * 20 for at in at_s]
    service = [first_mib + per_h * at / 3600 + fill for at, fill in zip(at_s, filling, strict=True)]
    return {
        "at_s": at_s,
        "mib": {"gateway": service, "broker": [2 * at for at in at_s]},
        "disk_mib": at_s,
        "jobs": 48_000,
        "delay_s": {"count": 1, "p50": 0.1, "p99": 0.2, "max": 0.3},
        "llm_answered": {"bench": 900},
        "llm_failures": 0,
        "stream_events": 9_000,
        "minutes": 40.0,
        "per_s": 20.0,
        "start_s": 12.0,
        "all_ended": True,
        "verify": "ok",
        "lines_of_errors": 0,
    } | changes


def leaking(per_h: float) -> list[dict[str, Any]]:
    return [a_slice(100 + per_h * 40 / 60 * n, per_h) for n in range(4)]


@pytest.mark.parametrize("per_h", [0.0, 0.5, 6.0])
def test_growth_is_that_over_the_last_slices_without_the_filling_of_caches(per_h: float) -> None:
    assert growth_mib_per_h(leaking(per_h)) == {"gateway": pytest.approx(per_h, abs=0.02)}


def test_goals_are_met_by_three_flat_slices_without_errors() -> None:
    def met(slices: list[dict[str, Any]]) -> list[bool]:
        return [words.startswith("met") for words in goals_of(slices).values()]

    assert met(leaking(0.2)) == [True] * 6
    assert met(leaking(6.0)) == [False, True, True, True, True, True]
    assert met(leaking(0.2)[:2]) == [False, True, True, True, True, False], "two slices are too few"
    wrong = a_slice(verify="failed", lines_of_errors=1, start_s=61.0, llm_failures=1)
    assert met([*leaking(0.2)[:2], wrong]) == [True, *[False] * 5]


def test_a_start_over_the_data_of_all_slices_takes_no_longer_than_over_those_of_one() -> None:
    def grows(*starts_s: float) -> str:
        return list(goals_of([a_slice(start_s=start_s) for start_s in starts_s]).values())[-1]

    assert grows(30.0, 12.0, 14.0) == "met: 2.0 s, 3 slices"
    assert grows(12.0, 12.0, 14.0, 17.0) == "not met: 5.0 s, 4 slices"


def test_a_slice_that_was_cut_short_keeps_its_number(tmp_path: Path) -> None:
    assert [begin_slice(tmp_path) for _ in range(3)] == [1, 2, 3]


def test_slices_are_kept_and_drawn(tmp_path: Path) -> None:
    assert read_slices(tmp_path) == []
    slices = leaking(0.2)
    write_slices(tmp_path, slices)
    assert read_slices(tmp_path) == slices
    settings = {"load": "reads", "cut_short": 1}
    page = render_page({"slices": slices, "goals": goals_of(slices), "settings": settings})
    assert "| 4 | 40.0 | 20 | 48000 | " in page and "cut short, without figures: 1." in page
    assert all(f"\n| {goal} | " in page for goal in goals_of(slices))
    draw(slices, tmp_path / PLOT)
    assert (tmp_path / PLOT).stat().st_size > 1000
