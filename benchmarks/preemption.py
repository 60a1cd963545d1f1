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
from benchmarks.parts.policies.continuous import Replay, is_shared, replay_of
from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.preemption import (
    PreemptionCell,
    candidates_without_preemption,
    cell_of,
    choose_base,
    mean_wait_s,
    policies_with_preemption,
    worst_of,
)
from benchmarks.parts.policies.preemption_goals import goals_of
from benchmarks.parts.policies.preemption_page import write_files
from benchmarks.parts.policies.replays import LOAD, TRACES
from benchmarks.parts.policies.rules import FAMILY, SKIP_FCFS
from benchmarks.parts.policies.seed_comparison import SeedComparison, compare_seeds
from shared.process.progress import ReportLine
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
    """Return `cells`, `worst`, `goals`, `choice`, and the candidates without preemption."""
    began = time.process_time()
    cells: list[PreemptionCell] = []
    comparisons: list[SeedComparison] = []
    for name, clusters in traces(options):
        replays = [replay_of(name, LOAD, cluster) for cluster in clusters]
        report_line(f"{name}: {sum(len(replay.work) for replay in replays):,} jobs")
        cells += cells_of(replays, options)
        if not options.quick:
            comparisons += compare_seeds(replays, SHARES, options.model)
        result = result_of(cells, comparisons, options, time.process_time() - began)
        if options.out:
            write_files(Path(options.out), result, cells, comparisons)
            add_section(Path(options.out))
    return result


def result_of(
    cells: list[PreemptionCell],
    comparisons: list[SeedComparison],
    options: PreemptionOptions,
    cpu_s: float,
) -> Json:
    return {
        "bench": "preemption",
        "candidates": [named.name for named in candidates_without_preemption(options.model)],
        "cells": [cell.plain() for cell in cells],
        "worst": worst_of(cells),
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


def cells_of(replays: list[Replay], options: PreemptionOptions) -> list[PreemptionCell]:
    """Return a cell per policy and cost of stops; the base is chosen once, it stops no job."""
    base = choose_base(replays, options.model)
    waits_s = {
        named.name: mean_wait_s([replay.run(named.rules) for replay in replays])
        for named in (base, SKIP_FCFS)
    }
    stops = QUICK_STOPS if options.quick else STOPS
    shares = SHARES[:1] if options.quick else SHARES
    policies = policies_with_preemption(options.model)
    return [
        cell_of(
            replays,
            named,
            (base.name, waits_s[base.name]),
            waits_s[SKIP_FCFS.name],
            replace(costs, fixed_share=share),
        )
        for share, costs, named in product(shares, stops, policies)
    ]


if __name__ == "__main__":
    serve(run, PreemptionOptions, __doc__ or "")
