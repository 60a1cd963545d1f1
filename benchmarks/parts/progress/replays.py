"""Parts of traces, replayed by the live rules with jobs that report their iterations or do not."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.parts.policies.replays import CLUSTERS, LOAD
from simulator.engine.options import SimulationOptions, build_scenario
from simulator.engine.reporting import ERROR, ReportingJobs, ReportingStart
from simulator.engine.run import simulate
from simulator.engine.scenario import Scenario, job_id
from simulator.metrics.outcome import Bools, Floats, ScheduleOutcome
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

SETTINGS: dict[str, SimulationOptions] = {
    "gittins": SimulationOptions(
        base_policy="gittins",
        preemption="ranked",
        preemption_protection="progress",
        checkpoint_s=1800.0,
        load=LOAD,
    ),
    "easy": SimulationOptions(base_policy="fcfs", queue_mode="easy", load=LOAD),
}
"""Pools in which reports decide something: ranks and prices of stops, and EASY's reservation."""


@dataclass(frozen=True, slots=True)
class TracePart:
    """Jobs of one cluster that follow each other, on a pool of their own."""

    name: str
    jobs: list[WorkloadJob]


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """The jobs of a part's window; every array has them in the same order."""

    submit_s: Floats
    delay_s: Floats
    """JCT less the work: all waits, restarts and lost work."""
    duration_s: Floats
    gpus: Floats
    lost_share: float

    @classmethod
    def of(cls, outcome: ScheduleOutcome) -> PartOutcome:
        judged: Bools = outcome.in_window & outcome.fits
        delay_s = np.maximum(outcome.jct_s - outcome.duration_s, 0.0)
        return cls(
            outcome.submit_s[judged],
            delay_s[judged],
            outcome.duration_s[judged],
            outcome.gpus[judged],
            float(
                np.nansum(outcome.lost_s * outcome.gpus) / np.nansum(outcome.held_s * outcome.gpus)
            ),
        )


def parts_of(trace: str, jobs: int, parts: int) -> Iterator[TracePart]:
    """Yield up to that many parts of each cluster of the trace, evenly over its jobs."""
    rows = load(trace).jobs
    for cluster in CLUSTERS if trace == "msft_itp" else (None,):
        own = [job for job in rows if cluster is None or job.tenant == cluster]
        count = max(1, min(parts, len(own) // jobs))
        for number in range(count):
            first = number * len(own) // count
            name = f"{cluster or trace}#{number + 1}"
            yield TracePart(name, own[first : first + jobs])


def scenario_of(part: TracePart, setting: str) -> Scenario:
    scenario, _ = build_scenario(part.jobs, SETTINGS[setting])
    return replace(scenario, pool=scenario.pool.model_copy(update={"use_progress": True}))


def play(scenario: Scenario, share: float, seed: int) -> PartOutcome:
    """Return the outcome where that share of the jobs reports."""

    def noisy_rest(start: ReportingStart, rest_ms: float) -> float:
        """Return a rest that is wrong by up to `ERROR`, drawn anew for each report and seed."""
        key = f"{seed}/{start.job_id}#{start.reports}".encode()
        return rest_ms * (1.0 + ERROR * (2.0 * zlib.crc32(key) / 2**32 - 1.0))

    ids = [job_id(number) for number in range(len(scenario.jobs))]
    reporting = ReportingJobs(ids, share, noisy_rest)
    return PartOutcome.of(simulate(scenario, reporting=reporting).outcome)
