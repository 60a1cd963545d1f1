"""Gains of the learned order and of CP-SAT: four runs of the live deciders on the same jobs.

Base is fair share without preemption by rank; learned is the shipped network with gated preemption.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.parts.command import Json, serve
from shared.process.progress import ReportLine
from simulator.engine.options import SimulationOptions, build_scenario
from simulator.engine.run import simulate
from simulator.metrics.bootstrap import gain, hours
from simulator.metrics.outcome import ScheduleOutcome
from simulator.workload.source import load


@dataclass(frozen=True, slots=True)
class AblationOptions:
    trace: str = "helios_venus"
    skip: int = 30_000
    jobs: int = 1_500
    load: float = 1.0


LEARNED: dict[str, str] = {"learned": "berth", "preemption": "ranked"}
SIDES: dict[str, dict[str, str]] = {
    "base+greedy": {},
    "base+cpsat": {"solver": "cpsat"},
    "learned+greedy": LEARNED,
    "learned+cpsat": {**LEARNED, "solver": "cpsat"},
}


async def run(options: AblationOptions, report_line: ReportLine) -> Json:
    """Return mean JCT and wait of each side, and its gain over base+greedy with an interval."""
    jobs = load(options.trace, options.skip + options.jobs).jobs[options.skip :]
    outcomes: dict[str, ScheduleOutcome] = {}
    cpu_s: dict[str, float] = {}
    for name, settings in SIDES.items():
        report_line(name)
        simulated = SimulationOptions(
            base_policy="fair_share",
            load=options.load,
            checkpoint_s=60.0,
            **settings,  # type: ignore[arg-type]
        )
        scenario, sizing = build_scenario(jobs, simulated)
        simulation = simulate(scenario)
        outcomes[name], cpu_s[name] = simulation.outcome, simulation.cpu_s
    base = outcomes["base+greedy"]
    return {
        "bench": "ablation",
        "trace": options.trace,
        "jobs": len(jobs),
        "nodes": sizing.nodes,
        "load": round(sizing.load, 3),
        "sides": {
            name: {**figures(base, outcome), "cpu_s": round(cpu_s[name], 1)}
            for name, outcome in outcomes.items()
        },
    }


def figures(base: ScheduleOutcome, outcome: ScheduleOutcome) -> Json:
    """Return figures over all jobs; a gain is positive where JCT is shorter."""
    unit = hours(base.submit_s, float(base.submit_s.min()))
    change = gain(base.jct_s, outcome.jct_s, unit, resamples=1000)
    return {
        "mean_jct_s": round(float(outcome.jct_s.mean()), 1),
        "mean_wait_s": round(float((outcome.jct_s - outcome.duration_s).mean()), 1),
        "p99_wait_s": round(float(np.quantile(outcome.jct_s - outcome.duration_s, 0.99)), 1),
        "jct_gain": round(-change.gain, 4),
        "ci_low": round(-change.high, 4),
        "ci_high": round(-change.low, 4),
    }


if __name__ == "__main__":
    serve(run, AblationOptions, __doc__ or "")
