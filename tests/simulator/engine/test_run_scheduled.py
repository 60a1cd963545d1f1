"""A simulation whose pool has a scheduler, which decides at the same instant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.engine.options import SimulationOptions, build_scenario
from simulator.engine.run import Simulation, simulate
from simulator.workload.source import SYNTHETIC, load

JOBS = 60


def played(scheduler: str | None) -> Simulation:
    scenario, _ = build_scenario(load(SYNTHETIC, JOBS, seed=3).jobs, SimulationOptions(load=2.0))
    pool = scenario.pool.model_copy(update={"scheduler": scheduler, "scheduler_round_s": 600.0})
    return simulate(replace(scenario, pool=pool))


def test_a_scheduler_decides_in_a_simulation_the_same_each_time() -> None:
    own, again, ranked = played("tiresias"), played("tiresias"), played(None)
    assert (own.start_ms == again.start_ms).all() and (own.end_ms == again.end_ms).all()
    assert ((own.end_ms > 0) == (ranked.end_ms > 0)).all(), "those that fit end"
    assert (own.start_ms != ranked.start_ms).any(), "or the scheduler would have decided nothing"


@pytest.mark.parametrize("scheduler", ["a_srpt", "dally", "tiresias_las"])
def test_every_job_ends_under_a_scheduler_that_chooses_nodes(scheduler: str) -> None:
    own, ranked = played(scheduler), played(None)
    assert ((own.end_ms > 0) == (ranked.end_ms > 0)).all(), "those that fit end"
    assert (own.start_ms != ranked.start_ms).any(), "or the scheduler would have decided nothing"
