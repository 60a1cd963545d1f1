"""Figures of the comparison with kube-scheduler: what is met follows from them alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.kubernetes.figures import (
    BERTH,
    DEFAULT,
    gang_figures,
    judge,
    render,
    speed_figures,
)

PAGE = Path("docs/results/kubernetes.json")


def system(per_s: float, bound: dict[str, int], number: int = 10) -> dict[str, Any]:
    figures = speed_figures(
        pods=10,
        bound=number,
        created_s=2.0,
        last_s=number / per_s,
        waits_s=[1.0, 2.0],
        cpu_s=(0.5, 1.0),
        requests=Counter({"create pods/binding": 10, "create events": 10}),
        requests_after=Counter({"patch pods": 5}),
    )
    return {**figures, "contended": gang_figures(bound, 3, 8)}


def test_figures_are_per_pod() -> None:
    figures = system(5.0, {"a": 3, "b": 0})
    assert (figures["bound_per_s"], figures["created_per_s"]) == (5.0, 5.0)
    assert (figures["requests_per_pod"], figures["requests_per_pod_at_end"]) == (2.0, 0.5)
    assert (figures["cpu_ms_per_pod"], figures["api_cpu_ms_per_pod"]) == (50.0, 100.0)


@pytest.mark.parametrize(
    ("bound", "whole", "half", "stranded"),
    [
        ({"a": 3, "b": 0}, 1, 0, 0),
        ({"a": 2, "b": 1}, 0, 2, 24),
        ({"a": 3, "b": 3}, 2, 0, 0),
        ({"a": 0, "b": 0}, 0, 0, 0),
    ],
)
def test_gpus_of_a_gang_that_is_not_whole_are_stranded(
    bound: dict[str, int], whole: int, half: int, stranded: int
) -> None:
    figures = gang_figures(bound, 3, 8)
    assert (figures["whole"], figures["half_started"]) == (whole, half)
    assert figures["gpus_stranded"] == stranded


def test_an_aim_is_met_by_what_was_measured_alone() -> None:
    default = system(4.0, {"a": 2, "b": 1})
    met = judge({DEFAULT: default, BERTH: system(5.0, {"a": 3, "b": 0})})
    assert [row["met"] for row in met] == [True, True, True]
    missed = judge({DEFAULT: default, BERTH: system(3.0, {"a": 2, "b": 0})})
    assert [row["met"] for row in missed] == [False, False, False]
    assert [row["met"] for row in judge({DEFAULT: default})] == [False, False, False]
    part = judge({DEFAULT: default, BERTH: system(5.0, {"a": 3, "b": 0}, number=9)})
    assert not part[0]["met"], "pods without a node count"


def test_a_system_of_which_no_gang_got_a_node_has_met_nothing() -> None:
    idle = judge({DEFAULT: system(4.0, {"a": 2}), BERTH: system(5.0, {"a": 0, "b": 0})})
    assert [row["met"] for row in idle] == [True, False, False]


def test_the_page_has_a_column_per_system_and_what_is_met() -> None:
    systems = {DEFAULT: system(4.0, {"a": 2, "b": 1}), BERTH: system(5.0, {"a": 3, "b": 0})}
    settings = {"cores": 2, "kubernetes": "1.36.3", "nodes": 4, "gpus": 8, "load_1m": 0.5}
    more = {"broker": "embedded", "gangs": 5, "workers": 2}
    page = render({**settings, **more, "systems": systems, "aims": judge(systems)})
    assert "| figure | `kube-scheduler` | `berth` |" in page
    assert "| `gpus_stranded` | 24 | 0 |" in page
    assert "| pods bound per second | 5.0 | at least as many as kube-scheduler: 4.0 | met |" in page


def test_the_published_figures_are_judged_by_the_present_aims() -> None:
    result = json.loads(PAGE.read_text())
    assert result["aims"] == judge(result["systems"])
    assert PAGE.with_suffix(".md").read_text() == render(result)
