"""Goals of topology are computed from its figures, and its section has them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.parts.schedulers.topology import (
    CHOSEN_SEEDS,
    SCHEDULERS,
    SEEDS,
    UPLINK_GB_PER_S,
    goals_of,
    measure,
    of_network,
    run_of,
)
from benchmarks.parts.schedulers.topology_page import topology_section
from shared.schedulers.systems.dally import Dally
from shared.schedulers.systems.fcfs import Fcfs
from simulator.workload.source import load

SYNTHETIC = load("synthetic:helios", 400, seed=3)
TRACE = [row for row in SYNTHETIC.jobs if row.gpus > 1]


@pytest.mark.parametrize(
    ("congested", "fast", "goals"),
    [(0.25, -0.01, (True, True)), (0.24, 0.0, (False, True)), (0.3, 0.02, (True, False))],
)
def test_goals_compare_means(congested: float, fast: float, goals: tuple[bool, bool]) -> None:
    assert (
        tuple(goals_of({"congested": {"mean": congested}, "fast": {"mean": fast}}).values())
        == goals
    )


def test_settings_were_chosen_on_other_seeds() -> None:
    assert not set(CHOSEN_SEEDS) & set(SEEDS)


def test_close_gpus_pay_where_the_spine_is_slow_alone() -> None:
    for name, least, most in (("congested", 0.0, 0.95), ("fast", 0.97, 1.03)):
        uplink = UPLINK_GB_PER_S[name]
        ours, base = (run_of(uplink, own, TRACE, 1, 60) for own in (Dally(), Fcfs()))
        assert least < ours.jct_h / base.jct_h < most
        assert ours.communication <= base.communication


def test_without_the_trace_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_TRACES", "none/traces")
    own = measure(lambda _: None)
    assert own == {"skipped": "the trace philly is not here"}
    assert "Not run" in "".join(topology_section(own))


def test_the_section_has_each_network_and_scheduler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.parts.schedulers.topology.load", lambda _: SYNTHETIC)
    monkeypatch.setattr("benchmarks.parts.schedulers.topology.trace_file", lambda _: tmp_path)
    own = measure(lambda _: None, [1, 2], 25)
    section = "".join(topology_section(own))
    assert section.count("| congested |") == len(SCHEDULERS)
    assert "Seeds 1 to 2" in section
    fast = of_network(UPLINK_GB_PER_S["fast"], TRACE, [1, 2], 25)
    assert own["networks"]["fast"]["gain"] == fast["gain"]
