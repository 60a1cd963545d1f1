"""Aims are judged, and the page shows the verdicts."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.parts.agents.figures import judge, per_agent_ms, quantiles, render_page

FIGURES: dict[str, object] = {
    "reconnect_s": 10.0,
    "start_p50_ms": 100.1,
    "start_p99_ms": None,
    "agent": {"rss_mib": 30.0, "step_rss_mib": 12.0, "step_mib": 12.1},
    "outage": {"fenced": 0, "reconnect_s": None},
}


def test_an_aim_is_met_up_to_its_limit_and_never_by_a_missing_figure() -> None:
    assert [(row["figure"], row["met"]) for row in judge(FIGURES)] == [
        ("reconnect_s", True),
        ("start_p50_ms", False),
        ("start_p99_ms", False),
        ("cpu_per_agent_ms_per_s", False),
        ("agent.rss_mib", True),
        ("agent.step_rss_mib", True),
        ("agent.step_mib", False),
        ("agent.idle_cpu_percent", False),
        ("outage.fenced", True),
        ("outage.reconnect_s", False),
    ]


def test_quantiles_of_no_time_are_absent() -> None:
    assert quantiles("start", []) == {"start_p50_ms": None, "start_p99_ms": None}
    assert quantiles("start", map(float, range(100))) == {
        "start_p50_ms": 50.0,
        "start_p99_ms": 99.0,
    }


def test_cpu_is_per_second_and_agent() -> None:
    assert per_agent_ms({"b": 2.0, "a": 1.0}, 100, 10.0) == {"a": 1.0, "b": 2.0}


def test_the_page_says_what_is_met() -> None:
    result = {
        "agents": 1000,
        "cores": 2,
        "broker": "embedded",
        "clients": 4,
        "jobs_per_s": 10.0,
        "real_jobs_per_s": 2.0,
        "join_s": 21.5,
        "faults": {"hello: 503": 3},
    }
    page = render_page(result, judge(FIGURES))
    assert "| `reconnect_s` | 10.0 s | at most 10 s | met |" in page
    assert "| `start_p50_ms` | 100.1 ms | at most 100 ms | not met |" in page
    assert "| `start_p99_ms` | not measured | at most 500 ms | not met |" in page
    assert "| `join_s` | 21.5 |" in page and "3 x `hello: 503`" in page


PAGE = Path("docs/results/agents.json")


def test_the_published_figures_are_judged_by_the_present_aims() -> None:
    result = json.loads(PAGE.read_text())
    assert result["aims"] == judge(result)
    assert PAGE.with_suffix(".md").read_text() == render_page(result, result["aims"])
