"""The study of CP-SAT: its worlds, its goal, and the section that shows all its rows."""

from __future__ import annotations

import pytest

from benchmarks.parts.schedulers import cpsat_worlds
from benchmarks.parts.schedulers.cpsat import CHOSEN_SEEDS, SEEDS, is_met, measure, of_world, run_of
from benchmarks.parts.schedulers.cpsat_page import cpsat_section
from benchmarks.parts.schedulers.cpsat_worlds import (
    GPUS_OF_NODE,
    equal_world,
    linked_world,
    speeds_of,
    spread_speeds_of,
)
from shared.performance.links import GangSteps, Link, TieredLinks
from shared.performance.rates import RateTable
from simulator.engine.sizing import load_of, window_of
from simulator.workload.source import load

SYNTHETIC = load("synthetic:helios", 400, seed=3)


@pytest.fixture
def synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat_worlds, "load", lambda _: SYNTHETIC)


@pytest.mark.parametrize(
    ("mean", "low", "met"), [(0.03, 0.001, True), (0.029, 0.001, False), (0.3, 0.0, False)]
)
def test_the_goal_is_for_the_mean_and_the_interval_excludes_none(
    mean: float, low: float, met: bool
) -> None:
    assert is_met({"mean": mean, "low": low, "high": 0.5}) == met


def test_the_look_ahead_was_chosen_on_other_seeds() -> None:
    assert not set(CHOSEN_SEEDS) & set(SEEDS)


def test_a_type_without_memory_for_a_job_has_no_speed() -> None:
    rates = RateTable({("v100", 1): 4.0, ("p100", 1): 2.0, ("k80", 1): 0.0})
    assert speeds_of(rates, 1) == {"v100": 1.0, "p100": 0.5}


def test_speeds_over_links_are_those_of_steps() -> None:
    fast, slow = Link(0.0, 1e12), Link(0.0, 1e9)
    steps = GangSteps(0.1, 1e9, TieredLinks(fast, fast, slow))
    speeds = spread_speeds_of(steps, 2)
    assert speeds["rack"] == 1.0
    assert speeds["spine"] == pytest.approx((0.1 + 0.001) / (0.1 + 1.0))


@pytest.mark.usefixtures("synthetic")
def test_a_world_has_its_load_and_the_same_jobs_for_each_planner() -> None:
    world = equal_world(1, 50, 0.9)
    window_s = window_of(world.jobs, 1.0)
    assert load_of(world.jobs, len(world.nodes), GPUS_OF_NODE, window_s) == pytest.approx(0.9, 0.02)
    assert equal_world(1, 50, 0.9) == world != equal_world(2, 50, 0.9)
    assert run_of(world, "cpsat").calls <= 2


@pytest.mark.usefixtures("synthetic")
def test_jobs_that_links_slow_down_are_over_sooner() -> None:
    rows = of_world([linked_world(seed, 60, 0.7, 1.5) for seed in (1, 2)], "links")
    assert rows["look_ahead"]["gain"]["mean"] > 0
    assert rows["look_ahead"]["calls"] > 0 and "gain" not in rows["greedy"]


def test_without_the_traces_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_TRACES", "none/traces")
    own = measure(lambda _: None)
    assert str(own["skipped"]).startswith("the traces philly")
    assert "Not run" in "".join(cpsat_section(own))


@pytest.mark.usefixtures("synthetic")
def test_the_section_has_a_row_for_each_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    study = "benchmarks.parts.schedulers.cpsat"
    own = {"equal nodes": lambda seed, jobs: equal_world(seed, jobs, 0.9)}
    monkeypatch.setattr(f"{study}.WORLDS", own)
    monkeypatch.setattr(f"{study}.trace_file", lambda name: name)
    section = "".join(cpsat_section(measure(lambda _: None, [1, 2], 20)))
    assert section.count("| equal nodes |") == 2
    assert "Seeds 1 to 2" in section
