from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.league import LeagueOptions, kept_traces, run
from benchmarks.parts.league.page import render_page

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_the_page_is_that_of_the_result() -> None:
    result = json.loads((RESULTS / "league.json").read_text())
    assert render_page(result) == (RESULTS / "league.md").read_text()


@pytest.mark.slow
async def test_a_page_is_made_trace_by_trace(tmp_path: Path) -> None:
    options = LeagueOptions("synthetic:helios", 1, 0.2, quick=True, out=str(tmp_path))
    result = await run(options, lambda _: None)
    assert list(result["traces"]) == ["synthetic:helios"]  # type: ignore[call-overload]
    page = (tmp_path / "league.md").read_text()
    assert "| synthetic:helios |" in page
    written = json.loads((tmp_path / "league.json").read_text())
    assert kept_traces(tmp_path / "league.json", written).keys() == {"synthetic:helios"}
    assert kept_traces(tmp_path / "league.json", {"setting": {}}) == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (LeagueOptions(parts=0), "parts: 0, must be above 0"),
        (LeagueOptions(days=-1.0), "days: -1.0, must be above 0"),
        (LeagueOptions(trace="none.parquet"), "none.parquet"),
    ],
)
async def test_options_that_leave_nothing_to_compare_are_refused(
    options: LeagueOptions, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        await run(options, lambda _: None)
