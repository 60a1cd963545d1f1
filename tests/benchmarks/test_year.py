"""`berth bench year`: a few minutes of a pool and an endpoint, with every figure and the page."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.parts.year.options import YearOptions
from benchmarks.parts.year.page import render_page
from benchmarks.year import run

SMALL = YearOptions(
    days=0.02, llm_hours=0.02, rankings_jobs=40, array_jobs=5, ended_jobs=1000, skip_kafka=True
)


def played(options: YearOptions) -> Any:
    return asyncio.run(run(options, lambda line: None))


@pytest.mark.process
def test_a_small_year_has_every_figure_and_a_page() -> None:
    result = played(SMALL)
    assert (result["days_played"], result["violations"]) == (0.02, 0)
    assert set(result["by_ledger"]) >= {"admission", "priority", "placement", "throttle", "events"}
    assert result["gb_per_day"] == pytest.approx(sum(result["by_ledger"].values()), abs=0.001)
    assert set(result["rss_mib"]) == {"admission", "priority", "placement", "throttle"}
    assert result["starts"]["admission"]["year"]["ended_jobs"] == 1000
    assert result["start_s_checkpoint"] > 0 and result["start_s_zero"] > 0
    assert result["postgres_gb"] > result["postgres_gb_with_retention"] > 0
    assert result["verify_s"] >= 0
    page = render_page(result)
    assert all(f"\n| {goal} | " in page for goal in result["goals"])
    assert "no year was played" in page and "200 jobs on" in page
    assert "Kafka was not measured" in page and "With 1,000 more of them" in page


def test_options_without_work_are_errors() -> None:
    with pytest.raises(ValueError, match="days: 0; 0.001 to 8760 are allowed"):
        played(YearOptions(days=0))
    with pytest.raises(ValueError, match="2 or more are needed"):
        played(YearOptions(days=0.001, jobs_per_day=10))
