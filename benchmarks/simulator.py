"""Jobs per CPU-second of both engines on one workload, each beside its floor.

The faithful engine runs the live deciders; the compiled kernel their rules. Load 0.9, 8-GPU nodes.
Floors: of both a bare heap of the same events, of the faithful engine also the fold of its own
facts (`faithful_fold`). The cost of the engine is that of its records: records per job, us each.
`easy` backfills by the true run times, `easy_history` by predicted ones, the default of pools.
`compiled_few` are the same figures of a tenth of the jobs, where the start of a run weighs more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple, get_args

import numpy as np

from benchmarks.parts.command import Json, serve
from benchmarks.parts.floors import fold_per_s, heap_per_s
from shared.contracts.pools import QueueMode
from shared.process.progress import ReportLine
from simulator.engine.options import SimulationOptions, build_scenario
from simulator.engine.run import simulate
from simulator.engine.sizing import nodes_for_load
from simulator.kernel import run as kernel
from simulator.kernel.work import Work, build_work
from simulator.workload.jobs import columns_from
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

QUEUE_MODES = get_args(QueueMode)
LOAD = 0.9
COMPILED_RUNS = 9


@dataclass(frozen=True, slots=True)
class SimulatorBenchOptions:
    """The defaults are those of the published figure."""

    trace: str = "synthetic"
    jobs: int = 2000
    compiled_jobs: int = 20000
    quick: bool = False


async def run(options: SimulatorBenchOptions, report_line: ReportLine) -> Json:
    fewer = 10 if options.quick else 1
    jobs = load(options.trace, options.jobs // fewer).jobs
    many = load(options.trace, options.compiled_jobs // fewer).jobs
    report_line(f"faithful engine: {len(jobs)} jobs")
    faithful = {name: FaithfulRun.of(jobs, setup) for name, setup in setups().items()}
    report_line(f"compiled kernel: {len(many)} jobs")
    compiled = {name: compiled_per_s(many, rules) for name, rules in rule_sets().items()}
    few = many[: len(many) // 10]
    report_line(f"compiled kernel: {len(few)} jobs")
    return {
        "bench": "simulator",
        "faithful_jobs_per_cpu_s": faithful["skip"].jobs_per_cpu_s,
        "compiled_jobs_per_cpu_s": compiled["learned"],
        "faithful": {name: run.jobs_per_cpu_s for name, run in faithful.items()},
        "faithful_records_per_job": {name: run.records_per_job for name, run in faithful.items()},
        "faithful_us_per_record": {name: run.us_per_record for name, run in faithful.items()},
        "faithful_fold": {
            name: fold_per_s(build_scenario(jobs, setup)[0]) for name, setup in setups().items()
        },
        "compiled": compiled,
        "compiled_few": {name: compiled_per_s(few, rules) for name, rules in rule_sets().items()},
        "floor_jobs_per_cpu_s": heap_per_s(many),
        "settings": {
            "trace": options.trace,
            "jobs": len(jobs),
            "compiled_jobs": len(many),
            "load": LOAD,
        },
    }


def setups() -> dict[str, SimulationOptions]:
    """Return the settings of the faithful engine."""
    fcfs = {
        mode: SimulationOptions(queue_mode=mode, easy_runtime="user", walltime="oracle", load=LOAD)
        for mode in QUEUE_MODES
    }
    return fcfs | {
        "easy_history": SimulationOptions(queue_mode="easy", load=LOAD),
        "preemption": SimulationOptions(base_policy="srsf", preemption="ranked", load=LOAD),
    }


def rule_sets() -> dict[str, kernel.Rules]:
    """Return the rules of the compiled kernel."""
    fcfs = {
        mode: kernel.Rules(queue_mode=mode, easy_runtime="user", runtime="oracle")
        for mode in QUEUE_MODES
    }
    history = kernel.Rules(queue_mode="easy", runtime="oracle")
    srsf = kernel.Rules(policy="srsf", preemption=True, large_gang_share=1.0)
    learned = kernel.Rules(policy="learned", preemption=True)
    return fcfs | {"easy_history": history, "preemption": srsf, "learned": learned}


class FaithfulRun(NamedTuple):
    """Figures of one simulation by the faithful engine."""

    jobs_per_cpu_s: float
    records_per_job: float
    us_per_record: float

    @classmethod
    def of(cls, jobs: Sequence[WorkloadJob], setup: SimulationOptions) -> FaithfulRun:
        simulation = simulate(build_scenario(jobs, setup)[0])
        records = sum(simulation.records.values())
        return cls(
            round(len(jobs) / simulation.cpu_s, 1),
            round(records / len(jobs), 2),
            round(simulation.cpu_s / records * 1e6, 1),
        )


def compiled_per_s(jobs: Sequence[WorkloadJob], rules: kernel.Rules) -> float:
    """Return jobs per CPU-s, the median of some runs of a few ms each, without compilation."""
    work = build_work(columns_from(jobs))
    sizes = np.full(nodes_for_load(jobs, LOAD).nodes, 8, np.int64)
    kernel.simulate(first_of(work), sizes, rules)
    spent_s = []
    for _ in range(COMPILED_RUNS):
        began_s = time.process_time()
        kernel.simulate(work, sizes, rules)
        spent_s.append(time.process_time() - began_s)
    return round(len(work) / max(median(spent_s), 1e-9), 1)


def first_of(work: Work) -> Work:
    """Return a few jobs, whose run compiles the kernel."""
    return work.part(slice(0, 50))


if __name__ == "__main__":
    serve(run, SimulatorBenchOptions, __doc__ or "")
