"""`berth bench flood`: a smaller flood on a real stack, with every figure and the page."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.flood import run
from benchmarks.parts.flood.options import FloodOptions
from benchmarks.parts.flood.page import goals_of, render_page

SMALL = FloodOptions(malformed=50_000, jobs=20, alone=2)


def played(options: FloodOptions) -> Any:
    return asyncio.run(run(options, lambda line: None))


@pytest.mark.parts
@pytest.mark.stack
def test_jobs_of_another_tenant_are_placed_behind_a_flood() -> None:
    result = played(SMALL)
    assert result["placed"] == result["good_jobs"] >= 22
    assert 0 < result["dead_letters"] < SMALL.malformed, "the flood was not there any more"
    assert (result["verify"], result["violations"]) == ("ok", [])
    page = render_page(result)
    assert all(f"\n| {goal} | " in page for goal in result["goals"])


def test_the_goal_is_not_met_by_one_late_job_or_one_without_an_answer() -> None:
    times = {"count": 2, "p50": 0.1, "p99": 0.2, "max": 0.2}
    result = {
        "malformed": 10,
        "dead_letters": 5,
        "good_jobs": 4,
        "placed": 4,
        "while_published_s": times,
        "behind_s": times,
        "verify": "ok",
    }
    assert list(goals_of(result).values())[0].startswith("met: 0.2 s at most, 4 of 4")
    for wrong in ({"placed": 3}, {"behind_s": times | {"max": 5.0}}):
        assert list(goals_of(result | wrong).values())[0].startswith("not met: ")
    full = result | {"dead_letters": 10, "verify": "failed"}
    assert [words.startswith("not met") for words in goals_of(full).values()] == [False, True, True]


def test_options_without_work_are_errors() -> None:
    with pytest.raises(ValueError, match="malformed: 0; 1 or more is allowed"):
        played(FloodOptions(malformed=0))
