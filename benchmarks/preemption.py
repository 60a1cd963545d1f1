"""Preemption by rank under the costs of real stops, against the best policy without preemption.

Each trace is replayed with checkpoints every 60 to 3600 s, restarts of 60 to 600 s and no, half or
nine tenths of the jobs never stopped; once also with intervals that each job draws, and restarts by
the size of a gang. With half-hourly checkpoints the networks of all training
seeds are compared with the Gittins rank, which ships. The policy without preemption is the one of
FCFS, SJF, SAF and EASY by prediction, smallest first and the learned queue that is best on the
warm-up. `--quick` replays two costs on one trace; `--trace FILE` replays that trace alone;
`--out DIR` writes a page, after each trace anew.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from benchmarks.parts.command import Json, serve
from benchmarks.parts.live.page import add_section
from benchmarks.parts.policies.continuous import Replay, is_shared, replay_of, side_of
from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.preemption import (
    PreemptionCell,
    all_ended,
    candidates_without_preemption,
    cell_of_run,
    choose_base,
    policies_with_preemption,
    run_under,
    trace_of,
    worst_of,
)
from benchmarks.parts.policies.preemption_goals import goals_of
from benchmarks.parts.policies.preemption_means import MeanGain, mean_gain
from benchmarks.parts.policies.preemption_page import write_files
from benchmarks.parts.policies.replays import LOAD, TRACES
from benchmarks.parts.policies.rules import FAMILY, SKIP_FCFS
from benchmarks.parts.policies.seed_comparison import SeedComparison, compare_seeds
from shared.process.progress import ReportLine
from simulator.metrics.policy_jobs import PolicyJobs
from simulator.workload.source import SYNTHETIC

DRAWN = StopCosts(1800.0, 60.0, checkpoint_spread=1.0, restart_growth=1 / 3)
"""Each job has its own interval, and large gangs restart more slowly."""
STOPS = (
    *(StopCosts(60.0, 60.0), StopCosts(600.0, 60.0), StopCosts(1800.0, 60.0)),
    *(StopCosts(1800.0, 300.0), StopCosts(600.0, 600.0), StopCosts(3600.0, 600.0)),
    DRAWN,
)
QUICK_STOPS = (StopCosts(600.0, 600.0), StopCosts(1800.0, 60.0))
SHARES = (0.0, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class PreemptionOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    trace: str = ""
    quick: bool = False
    model: str = FAMILY
    out: str = ""


async def run(options: PreemptionOptions, report_line: ReportLine) -> Json:
    """Return `cells`, `worst`, `means`, `goals`, `choice`, and the candidates that stop no job."""
    began = time.process_time()
    cells: list[PreemptionCell] = []
    means: list[MeanGain] = []
    comparisons: list[SeedComparison] = []
    for name, clusters in traces(options):
        replays = [replay_of(name, LOAD, cluster) for cluster in clusters]
        report_line(f"{name}: {sum(len(replay.work) for replay in replays):,} jobs")
        own_cells, own_means = cells_of(replays, options)
        cells, means = cells + own_cells, means + own_means
        if not options.quick:
            comparisons += compare_seeds(replays, SHARES, options.model)
        result = result_of(cells, means, comparisons, options, time.process_time() - began)
        if options.out:
            write_files(Path(options.out), result, cells, comparisons, means)
            add_section(Path(options.out))
    return result


def result_of(
    cells: list[PreemptionCell],
    means: list[MeanGain],
    comparisons: list[SeedComparison],
    options: PreemptionOptions,
    cpu_s: float,
) -> Json:
    return {
        "bench": "preemption",
        "candidates": [named.name for named in candidates_without_preemption(options.model)],
        "cells": [cell.plain() for cell in cells],
        "worst": worst_of(cells),
        "means": [mean.plain() for mean in means],
        "goals": goals_of(cells),
        "choice": [cell.plain() for cell in comparisons],
        "cpu_s": round(cpu_s, 1),
    }


def traces(options: PreemptionOptions) -> list[tuple[str, tuple[str | None, ...]]]:
    """Return the traces with their clusters; the synthetic one if there is no other."""
    if options.trace:
        return [(options.trace, (None,))]
    shared = [trace for trace in TRACES if is_shared(trace[0])]
    return (shared[:1] if options.quick else shared) or [(SYNTHETIC, (None,))]


def cells_of(
    replays: list[Replay], options: PreemptionOptions
) -> tuple[list[PreemptionCell], list[MeanGain]]:
    """Return a cell per policy and cost of stops, and the means over the costs.

    The base is chosen once: it stops no job.
    """
    base = choose_base(replays, options.model)
    sides = {
        named.name: side_of([replay.run(named.rules) for replay in replays])
        for named in (base, SKIP_FCFS)
    }
    wait_s = {name: float(side.delay_s.mean()) for name, side in sides.items()}
    own_base, fcfs_s = (base.name, wait_s[base.name]), wait_s[SKIP_FCFS.name]
    trace, stops = trace_of(replays), QUICK_STOPS if options.quick else STOPS
    cells: list[PreemptionCell] = []
    means: list[MeanGain] = []
    shares = SHARES[:1] if options.quick else SHARES
    for share, named in product(shares, policies_with_preemption(options.model)):
        runs: list[PolicyJobs] = []
        for costs in (replace(stop, fixed_share=share) for stop in stops):
            outcomes = run_under(costs, replays, named)
            cells.append(cell_of_run(trace, outcomes, named, own_base, fcfs_s, costs))
            if all_ended(outcomes):
                runs.append(side_of(outcomes))
        if len(runs) == len(stops):
            means.append(mean_gain((trace, share, named.name), sides[base.name], runs))
    return cells, means


if __name__ == "__main__":
    serve(run, PreemptionOptions, __doc__ or "")
