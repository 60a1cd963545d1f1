from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.parts.schedulers.spot_page import render_page
from benchmarks.spot import SpotOptions, run

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_the_page_is_that_of_the_result() -> None:
    result = json.loads((RESULTS / "spot.json").read_text())
    assert render_page(result) == (RESULTS / "spot.md").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SpotOptions(seeds=0), "seeds: 0, must be at least 1"),
        (SpotOptions(nodes=8), "nodes: 8, must be at least 16"),
        (SpotOptions(days=2), "days: 2, must be at least 3"),
        (SpotOptions(trace="none.parquet"), "no such file"),
    ],
)
async def test_options_that_leave_nothing_to_compare_are_refused(
    options: SpotOptions, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        await run(options, lambda _: None)
