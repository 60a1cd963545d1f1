"""Decima's world: jobs of dependent stages, under heuristics and the trained network.

No figure is published for jobs that are public here, so the row of `systems` is by the tests.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from benchmarks.parts.schedulers.over_seeds import gain_of, interval
from shared.process.progress import ReportLine
from simulator.stage_dags.jobs import Draws, drawn_jobs
from simulator.stage_dags.network import by_network
from simulator.stage_dags.network_weights import ALPHA, CONSERVES, GENERATIONS, KEPT, WEIGHTS
from simulator.stage_dags.picks import critical_path, fifo, sjf_cp, weighted_fair
from simulator.stage_dags.world import Executors, Pick, StageWorld

SEEDS = range(12)
"""None of them is one of the tuning or the training."""
JOBS = 60
NETWORK, TUNED = "network", "weighted_fair"


def picks() -> Iterator[tuple[str, Pick]]:
    """Yield the policies by name."""
    yield "fifo", fifo
    yield "critical_path", critical_path
    yield "sjf_cp", sjf_cp
    yield "fair", weighted_fair(0.0, conserves=True)
    yield "naive_weighted_fair", weighted_fair(1.0, conserves=True)
    yield TUNED, weighted_fair(ALPHA, CONSERVES)
    yield NETWORK, by_network(np.array([float(word) for word in WEIGHTS.split()]), ALPHA)


def measure(
    report_line: ReportLine, seeds: Iterable[int] = SEEDS, jobs: int = JOBS
) -> dict[str, Any]:
    """Return the mean completion times of each policy.

    Keys: the setting; `rows`: policy -> `jct_s` (`mean`, `low`, `high`, `values` by seed) and
    `moves` of executors per job; `gain` of the network over the tuned heuristic, paired by seed;
    `ships`: the one of the two that is to be taken.
    """
    began_s = time.process_time()
    numbers, cluster = list(seeds), Executors()
    draws = [Draws(seed, jobs, cluster.total) for seed in numbers]
    sequences = [drawn_jobs(own) for own in draws]
    rows: dict[str, Any] = {}
    for name, pick in picks():
        runs = [StageWorld(own, pick, cluster).run() for own in sequences]
        rows[name] = {
            "jct_s": interval([run.mean_jct_s() for run in runs]),
            "moves": round(sum(run.moves for run in runs) / (jobs * len(runs)), 2),
        }
        report_line(f"stage_dags: {name}, mean JCT {rows[name]['jct_s']['mean']:.1f} s")
    gain = gain_of(rows[TUNED]["jct_s"], rows[NETWORK]["jct_s"])
    return {
        "seeds": numbers,
        "jobs": jobs,
        "executors": cluster.total,
        "move_s": cluster.move_s,
        "warm_up_s": cluster.warm_up_s,
        "load": draws[0].load,
        "alpha": ALPHA,
        "conserves": CONSERVES,
        "generations": GENERATIONS,
        "kept": KEPT,
        "rows": rows,
        "gain": gain,
        "ships": NETWORK if gain["low"] > 0.0 else TUNED,
        "cpu_s": round(time.process_time() - began_s, 1),
    }
