"""Completion times with greedy and CP-SAT where nodes differ for jobs, and where they do not."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.parts.command import Json
from benchmarks.parts.schedulers.cpsat_worlds import (
    GPUS_OF_NODE,
    NODES_OF_RACK,
    NODES_OF_TYPE,
    RACKS,
    SHARE_NODES,
    WORLDS,
    CpsatWorld,
)
from benchmarks.parts.schedulers.over_seeds import gain_of, interval
from services.placement.core.pool.state import Pool
from services.placement.core.solver.contended import solve_now
from shared.contracts.solver_plan import PlanReady
from shared.process.progress import ReportLine
from simulator.engine.run import simulate
from simulator.engine.scenario import Walltime
from simulator.rounds.artifacts import trace_file
from simulator.rounds.gavel_jobs import TRACE

TRACES = ("philly", "alibaba_gpu_2023", TRACE)
CHOSEN_SEEDS = range(10)
"""Seeds on which the look-ahead was chosen; they count in no figure."""
SEEDS = range(10, 20)
JOBS = 400
GOAL = 0.03
PLANNERS: dict[str, tuple[str, Walltime]] = {
    "greedy": ("greedy", "none"),
    "cpsat": ("cpsat", "none"),
    "look_ahead": ("cpsat", "oracle"),
}
"""Solver of the pool, and the run times that jobs declare; where they declare none these are
predicted from jobs that ended."""


@dataclass(slots=True)
class CountedSolver:
    """The solver of a replay, with its calls and those whose plan was better than greedy's."""

    calls: int = 0
    improved: int = 0

    def __call__(self, pool: Pool) -> PlanReady | None:
        self.calls += 1
        ready = solve_now(pool)
        self.improved += ready is not None and ready.objective > ready.greedy
        return ready


@dataclass(frozen=True, slots=True)
class CpsatRun:
    """Mean JCT, h; calls of the solver, and those that improved the plan; CPU s of the replay."""

    jct_h: float
    calls: int
    improved: int
    cpu_s: float


def measure(report_line: ReportLine, seeds: Iterable[int] = SEEDS, jobs: int = JOBS) -> Json:
    """Return the rows of each world and planner.

    `worlds`: name -> planner -> `jct_h` (`mean`, `low`, `high`, `values` by seed), `calls`,
    `improved` and `cpu_s` per replay, and below greedy `gain`, paired by seed, and `met`: whether
    its interval lies above the goal.
    """
    missing = [name for name in TRACES if trace_file(name) is None]
    if missing:
        return {"skipped": f"the traces {', '.join(missing)} are not here"}
    began_s = time.process_time()
    numbers = list(seeds)
    worlds: dict[str, Any] = {}
    for name, build in WORLDS.items():
        worlds[name] = of_world([build(seed, jobs) for seed in numbers], name)
        gains = {own: row["gain"]["mean"] for own, row in worlds[name].items() if "gain" in row}
        report_line(f"{name}: " + ", ".join(f"{own} {-gain:+.1%}" for own, gain in gains.items()))
    return {
        "jobs": jobs,
        "seeds": numbers,
        "chosen_seeds": list(CHOSEN_SEEDS),
        "goal": GOAL,
        "gpus_of_node": GPUS_OF_NODE,
        "nodes_of_type": NODES_OF_TYPE,
        "racks": [RACKS, NODES_OF_RACK],
        "share_nodes": SHARE_NODES,
        "worlds": worlds,
        "cpu_s": round(time.process_time() - began_s, 1),
    }


def of_world(replays: list[CpsatWorld], name: str) -> dict[str, Any]:
    """Return the row of each planner; look-ahead is for types, so other worlds have no such row."""
    rows: dict[str, Any] = {}
    for planner in PLANNERS:
        if planner == "look_ahead" and not name.startswith(("types", "links")):
            continue
        runs = [run_of(world, planner) for world in replays]
        calls = sum(run.calls for run in runs)
        rows[planner] = {
            "jct_h": interval([run.jct_h for run in runs]),
            "calls": round(fmean(run.calls for run in runs), 1),
            "improved": round(sum(run.improved for run in runs) / calls, 3) if calls else 0.0,
            "cpu_s": round(fmean(run.cpu_s for run in runs), 2),
        }
        if planner != "greedy":
            gain = gain_of(rows["greedy"]["jct_h"], rows[planner]["jct_h"])
            rows[planner] |= {"gain": gain, "met": is_met(gain)}
    return rows


def is_met(gain: dict[str, float]) -> bool:
    """Return whether the mean gain is at least the goal, and its interval above none."""
    return gain["mean"] >= GOAL and gain["low"] > 0.0


def run_of(world: CpsatWorld, planner: str) -> CpsatRun:
    """Run the jobs of a replay through the live deciders."""
    solver, walltime = PLANNERS[planner]
    counted = CountedSolver()
    simulation = simulate(world.scenario(solver, walltime), planner=counted)
    jct_h = float(simulation.outcome.jct_s.mean()) / 3600
    return CpsatRun(jct_h, counted.calls, counted.improved, simulation.cpu_s)
