"""A simulation whose pool uses the solver: at the same instant, and the same each time."""

from __future__ import annotations

from collections import Counter

import pytest

from services.placement.core.pool.state import Pool
from services.placement.core.solver.contended import solve_now
from shared.contracts.solver_plan import PlanReady
from simulator.engine.options import SimulationOptions, build_scenario
from simulator.engine.run import Simulation, simulate
from simulator.workload.source import SYNTHETIC, load

JOBS = 150
WORK = 0.2


def played(solver: str, seen: Counter[str]) -> Simulation:
    def planner(pool: Pool) -> PlanReady | None:
        message = solve_now(pool, WORK)
        assert message is not None
        seen[message.status] += 1
        seen["better"] += message.objective > message.greedy
        return message

    options = SimulationOptions(solver=solver, nodes=6, load=4.0)
    scenario, _ = build_scenario(load(SYNTHETIC, JOBS, seed=3).jobs, options)
    return simulate(scenario, planner=planner)


@pytest.fixture(scope="module")
def twice() -> list[tuple[Simulation, Counter[str]]]:
    seen: list[Counter[str]] = [Counter(), Counter()]
    return [(played("cpsat", counter), counter) for counter in seen]


def test_contended_rounds_are_solved_when_they_are_opened(
    twice: list[tuple[Simulation, Counter[str]]],
) -> None:
    (done, seen), _ = twice
    assert seen["kept_greedy"] > 10 and seen["optimal"] == seen["better"] > 0
    assert not seen["refused"] and not seen["died"]
    assert (done.end_ms[done.start_ms >= 0] > 0).all() and (done.start_ms >= 0).sum() > JOBS - 5


def test_the_same_simulation_ends_the_same(twice: list[tuple[Simulation, Counter[str]]]) -> None:
    (one, seen), (other, again) = twice
    assert seen == again
    assert (one.start_ms == other.start_ms).all() and (one.end_ms == other.end_ms).all()


def test_a_pool_with_the_greedy_solver_requests_no_plan() -> None:
    seen: Counter[str] = Counter()
    played("greedy", seen)
    assert not seen
