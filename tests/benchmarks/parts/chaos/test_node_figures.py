"""The goals of nodes are met only if every count is 0 and `verify` agrees."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.parts.chaos import node_figures

FIGURES: dict[str, Any] = {
    **dict.fromkeys(node_figures.ZEROS, 0),
    "rounds": 200,
    "beyond_the_lease": 31,
    "stop_after_s": 20.0,
    "agents": 4,
    "jobs_acknowledged": 900,
    "verify": "ok",
}


def sentence(**changed: object) -> str:
    figures = FIGURES | changed
    return node_figures.rounds({"parts": {"nodes": figures}, "runs": {}}, {})


def test_two_hundred_rounds_without_a_finding_meet_the_goal() -> None:
    assert sentence().endswith("verify **ok**: **met**")


def test_a_shorter_run_is_named_as_one() -> None:
    assert sentence(rounds=40).endswith("**met by a shorter run**")


@pytest.mark.parametrize("name", node_figures.ZEROS)
def test_one_finding_of_any_kind_is_enough(name: str) -> None:
    assert sentence(**{name: 1}).endswith("**not met**")


def test_a_violation_is_enough() -> None:
    assert sentence(verify="failed").endswith("verify **failed**: **not met**")


def cuts(**changed: object) -> str:
    more = {"outlived_lease": 0, "least_margin_s": 0.4, "load_1m": {"p50": 3.0}}
    more |= {"ticks_after_release": 0, "rounds": 100}
    result = {"parts": {"cuts": FIGURES | more | changed}, "runs": {}}
    return node_figures.cuts(result, {})


def test_cuts_of_the_network_have_counts_of_their_own() -> None:
    assert "at least 0.4 s before their deadline" in cuts()
    assert cuts().endswith("**met**")
    assert cuts(rounds=99).endswith("**met by a shorter run**")
    for name in ("ticks_after_release", "outlived_lease", *node_figures.ZEROS):
        assert cuts(**{name: 1}).endswith("**not met**")


def test_outages_and_upgrades_have_counts_of_their_own() -> None:
    more = {
        "outage_s": 480.0,
        "jobs": 50,
        "back_s": 9.1,
        "longest_gap_s": 0.2,
        "upgrades": 5,
        "upgrade_s": {"p50": 1.0},
        "nodes_fenced": 1,
        "incomplete_outputs": 0,
    }
    result = {"parts": {"outage": FIGURES | more, "upgrade": FIGURES | more}, "runs": {}}
    assert "away for 480 s" in node_figures.outage(result, {})
    assert node_figures.outage(result, {}).endswith("**not met**")
    assert "nodes fenced: 1, incomplete outputs: 0" in node_figures.upgrade(result, {})
