"""What the learned order and CP-SAT are each worth: four runs of the live deciders, same jobs.

Base is fair share without preemption by rank; learned is the shipped network with gated preemption.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.parts.command import Json, Say, serve
from simulator.engine.options import SimulationOptions as Simulated
from simulator.engine.options import build_scenario
from simulator.engine.run import simulate
from simulator.metrics.bootstrap import days, gain
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


async def run(options: AblationOptions, say: Say) -> Json:
    """Mean JCT and delay of each side, and its gain over base+greedy with a paired interval."""
    jobs = load(options.trace, options.skip + options.jobs).jobs[options.skip :]
    outcomes: dict[str, ScheduleOutcome] = {}
    cpu_s: dict[str, float] = {}
    for name, words in SIDES.items():
        say(name)
        wanted = Simulated(base_policy="fair_share", load=options.load, checkpoint_s=60.0, **words)  # type: ignore[arg-type]
        scenario, sizing = build_scenario(jobs, wanted)
        found = simulate(scenario)
        outcomes[name], cpu_s[name] = found.outcome, found.cpu_s
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
    """Gains are positive where JCT is shorter; over all jobs, their days are the blocks."""
    found = gain(base.jct_s, outcome.jct_s, days(base.submit_s), resamples=1000)
    return {
        "mean_jct_s": round(float(outcome.jct_s.mean()), 1),
        "mean_wait_s": round(float((outcome.jct_s - outcome.duration_s).mean()), 1),
        "p99_wait_s": round(float(np.quantile(outcome.jct_s - outcome.duration_s, 0.99)), 1),
        "jct_gain": round(-found.gain, 4),
        "ci_low": round(-found.high, 4),
        "ci_high": round(-found.low, 4),
    }


if __name__ == "__main__":
    serve(run, AblationOptions, __doc__ or "")
