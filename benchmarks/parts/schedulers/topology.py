"""Completion times in racks with slow and fast uplinks, by how a scheduler picks nodes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from benchmarks.parts.command import Json
from benchmarks.parts.schedulers.over_seeds import gain_of, interval
from shared.performance.links import Link, TieredLinks
from shared.performance.restarts import RestartCosts
from shared.process.progress import ReportLine
from shared.schedulers.delay_timers import TimerRules
from shared.schedulers.hooks import Scheduler
from shared.schedulers.systems.dally import Dally
from shared.schedulers.systems.fcfs import Fcfs
from simulator.rounds.artifacts import trace_file
from simulator.rounds.linked_jobs import RackedCluster, linked_jobs
from simulator.rounds.uplinks import RackedWorld
from simulator.rounds.world import RoundsOptions
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

TRACE = "philly"
CHOSEN_SEEDS = range(4)
"""Seeds on which the settings of `Dally` and the cluster were chosen; they count in no figure."""
SEEDS = range(4, 10)
JOBS = 400
LOAD = 0.7
RACKS, NODES_OF_RACK, GPUS_OF_NODE = 4, 4, 8
ROUND_S = 300.0
RESTARTS = RestartCosts(60.0)
GB = 1e9
NODE, RACK, SPINE_LATENCY_S = Link(1e-6, 300 * GB), Link(5e-6, 25 * GB), 1e-5
LEAST_GAIN, MOST_LOSS = 0.25, 0.01


UPLINK_GB_PER_S = {"congested": 1.5, "shared": 6.0, "fast": 100.0}
"""Capacity of a rack's uplink; over `fast`, all nodes of a rack send as fast as within it."""


class WithoutWaits(Dally):
    """Dally without timers and stops: the closest GPUs that are free, and moves to closer ones."""

    name: ClassVar[str] = "closest"
    timers: ClassVar[TimerRules] = TimerRules(first_s=0.0, longest_s=0.0)
    stops: ClassVar[bool] = False


SCHEDULERS: Mapping[str, type[Scheduler]] = {
    "best_fit": Fcfs,
    "closest": WithoutWaits,
    "dally": Dally,
}


@dataclass(frozen=True, slots=True)
class TopologyRun:
    """Mean JCT, h; starts after the first per job; part of the GPU time spent on communication."""

    jct_h: float
    restarts: float
    communication: float


def measure(
    report_line: ReportLine, seeds: Iterable[int] = SEEDS, jobs: int = JOBS, trace: str = TRACE
) -> dict[str, Any]:
    """Return the mean completion times of each network and scheduler.

    Keys: the setting; `networks`: name -> `uplink_gb_per_s`, `rows`: scheduler ->
    `jct_h` (`mean`, `low`, `high`, `values` by seed), `restarts`, `communication`; and `gain` of
    Dally over best fit, paired by seed, with the `least` of a seed; `goals`: name -> whether it is
    met.
    """
    if trace_file(trace) is None:
        return {"skipped": f"the trace {trace} is not here"}
    began_s = time.process_time()
    rows, numbers = [row for row in load(trace).jobs if row.gpus > 1], list(seeds)
    networks: dict[str, dict[str, Any]] = {}
    for name, uplink_gb_per_s in UPLINK_GB_PER_S.items():
        own = of_network(uplink_gb_per_s, rows, numbers, jobs)
        networks[name] = {"uplink_gb_per_s": uplink_gb_per_s, **own}
        report_line(f"{name}: mean JCT {0.0 - networks[name]['gain']['mean']:+.1%} to best fit")
    return {
        **setting(trace, numbers, jobs),
        "networks": networks,
        "goals": goals_of({name: own["gain"] for name, own in networks.items()}),
        "cpu_s": round(time.process_time() - began_s, 1),
    }


def setting(trace: str, seeds: list[int], jobs: int) -> Json:
    """Return what the figures were measured with."""
    return {
        "trace": trace,
        "jobs": jobs,
        "load": LOAD,
        "seeds": seeds,
        "chosen_seeds": list(CHOSEN_SEEDS),
        "cluster": [RACKS, NODES_OF_RACK, GPUS_OF_NODE],
        "node_gb_per_s": NODE.bytes_per_s / GB,
        "rack_gb_per_s": RACK.bytes_per_s / GB,
        "restart_s": RESTARTS.constant_s,
        "timers": asdict(Dally.timers),
        "rules": asdict(Dally.rules),
    }


def cluster_of(uplink_gb_per_s: float) -> RackedCluster:
    spine = Link(SPINE_LATENCY_S, min(RACK.bytes_per_s, uplink_gb_per_s * GB))
    links = TieredLinks(NODE, RACK, spine)
    return RackedCluster(RACKS, NODES_OF_RACK, GPUS_OF_NODE, links)


def of_network(
    uplink_gb_per_s: float, trace: Sequence[WorkloadJob], seeds: Iterable[int], jobs: int
) -> dict[str, Any]:
    """Return the figures of each scheduler; all see the same jobs of a seed."""
    figures: dict[str, Any] = {}
    for name, scheduler in SCHEDULERS.items():
        runs = [run_of(uplink_gb_per_s, scheduler(), trace, seed, jobs) for seed in seeds]
        figures[name] = {
            "jct_h": interval([run.jct_h for run in runs]),
            "restarts": round(sum(run.restarts for run in runs) / len(runs), 3),
            "communication": round(sum(run.communication for run in runs) / len(runs), 3),
        }
    base, ours = figures["best_fit"]["jct_h"], figures["dally"]["jct_h"]
    gain = gain_of(base, ours)
    pairs = zip(base["values"], ours["values"], strict=True)
    gain["least"] = round(min(1 - own / other for other, own in pairs), 4)
    return {"rows": figures, "gain": gain}


def run_of(
    uplink_gb_per_s: float, scheduler: Scheduler, trace: Sequence[WorkloadJob], seed: int, jobs: int
) -> TopologyRun:
    """Run the jobs of the trace that the seed draws, with models that it draws."""
    rows = random.Random(seed).sample(trace, min(jobs, len(trace)))
    rows.sort(key=lambda row: row.submit_s)
    cluster = cluster_of(uplink_gb_per_s)
    own = linked_jobs(rows, cluster, LOAD, seed)
    options = RoundsOptions(ROUND_S, seed, RESTARTS)
    world = RackedWorld(own, cluster.nodes(), scheduler, options, uplink_gb_per_s * GB)
    outcome = world.run()
    held_gpu_s = sum(job.held_gpu_s for job in outcome.jobs)
    return TopologyRun(
        outcome.mean_jct_s() / 3600,
        sum(job.restarts for job in outcome.jobs) / len(outcome.jobs),
        world.communicating_gpu_s() / held_gpu_s,
    )


def goals_of(gains: Mapping[str, Mapping[str, float]]) -> dict[str, bool]:
    """Return whether each goal is met, by means."""
    return {
        "congested_25_percent_below_best_fit": gains["congested"]["mean"] >= LEAST_GAIN,
        "fast_within_1_percent_of_best_fit": abs(gains["fast"]["mean"]) <= MOST_LOSS,
    }
