"""The goals of nodes are met only if every count is 0 and `verify` agrees."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.parts.chaos import node_figures
from benchmarks.parts.chaos.figures import Figures, Measured, Measurement

FIGURES: dict[str, Any] = {
    **dict.fromkeys(node_figures.ZEROS, 0),
    "rounds": 200,
    "beyond_the_lease": 31,
    "stop_after_s": 20.0,
    "agents": 4,
    "jobs_acknowledged": 900,
    "verify": "ok",
}


def measured(measure: Measured, result: Figures) -> Measurement:
    measurement = measure(result, {})
    assert measurement is not None
    return measurement


def rounds(**changed: object) -> Measurement:
    result = {"parts": {"nodes": FIGURES | changed}, "runs": {}}
    return measured(node_figures.rounds, result)


def test_two_hundred_rounds_without_a_finding_meet_the_goal() -> None:
    assert rounds().is_met and not rounds().left_out


def test_a_shorter_run_is_named_as_one() -> None:
    assert rounds(rounds=40).is_met and rounds(rounds=40).left_out == "40 of 200 rounds"


@pytest.mark.parametrize("name", node_figures.ZEROS)
def test_one_finding_of_any_kind_is_enough(name: str) -> None:
    assert not rounds(**{name: 1}).is_met


def test_a_violation_is_enough() -> None:
    assert not rounds(verify="failed").is_met


def cuts(**changed: object) -> Measurement:
    more = {"outlived_lease": 0, "least_margin_s": 0.4, "load_1m": {"p50": 3.0}}
    more |= {"ticks_after_release": 0, "rounds": 100}
    result = {"parts": {"cuts": FIGURES | more | changed}, "runs": {}}
    return measured(node_figures.cuts, result)


def test_cuts_of_the_network_have_counts_of_their_own() -> None:
    assert "at least 0.4 s before their deadline" in cuts().summary
    assert cuts().is_met and not cuts().left_out
    assert cuts(rounds=99).is_met and cuts(rounds=99).left_out == "99 of 100 cuts"
    for name in ("ticks_after_release", "outlived_lease", *node_figures.ZEROS):
        assert not cuts(**{name: 1}).is_met


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
    outage, upgrade = (
        measured(each, result) for each in (node_figures.outage, node_figures.upgrade)
    )
    assert "away for 480 s" in outage.summary and not outage.is_met
    assert "nodes fenced: 1, incomplete outputs: 0" in upgrade.summary
