"""Figures of one run of the day, the same for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.parts.live.day import Day, rules_of, scenario_of
from benchmarks.parts.rounding import rounded
from simulator.engine.run import simulate as simulate_deciders
from simulator.kernel.run import simulate
from simulator.kernel.work import build_work
from simulator.metrics.measures import lost_share, makespan_s
from simulator.metrics.outcome import ScheduleOutcome
from simulator.workload.jobs import columns_from
from simulator.workload.rows import NODE_GPUS

DRAWS = 10


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The keys of a run in the JSON. Times are cluster seconds."""

    jobs_ended: int
    stops: int
    """Stops by preemption and migration."""
    most_starts: int
    """Of one job."""
    lost_share: float
    """GPU time that stops lost, work since the last checkpoint and restarts, over that held."""
    mean_wait_s: float
    """JCT less work, so that lost work, restarts and hand-overs count as waiting."""
    span_s: float
    """First submit to last end."""

    def plain(self) -> dict[str, float]:
        return rounded(self, 5)


def figures_of(outcome: ScheduleOutcome, lost_share: float) -> RunFigures:
    """Return the figures of an outcome whose losses by stops are known."""
    return RunFigures(
        jobs_ended=int(outcome.ended.sum()),
        stops=int(np.maximum(outcome.starts - 1, 0).sum()),
        most_starts=int(outcome.starts.max(initial=0)),
        lost_share=lost_share,
        mean_wait_s=float((outcome.jct_s - outcome.duration_s).mean()),
        span_s=makespan_s(outcome),
    )


def kernel_figures(day: Day) -> RunFigures:
    """Return the figures of the kernel, where GPUs change hands in no time."""
    sizes = np.full(day.nodes, NODE_GPUS, np.int64)
    outcome = simulate(build_work(columns_from(day.jobs)), sizes, rules_of(day)).outcome
    return figures_of(outcome, lost_share(outcome))


def deciders_figures(day: Day) -> RunFigures:
    """Return the figures of the live deciders on a virtual clock, with the rounds of the pool."""
    outcome = simulate_deciders(scenario_of(day)).outcome
    return figures_of(outcome, lost_share(outcome))


def deciders_with_handovers(day: Day, handover_s: float, draws: int = DRAWS) -> list[RunFigures]:
    """Return runs of the deciders in which GPUs change hands as slowly as they did live.

    Every start holds its GPUs for `handover_s` more, and every submit takes up to as long to
    arrive: how long is drawn, so that the runs show what such delays may do to the figures.
    """
    return [with_handovers(day, handover_s, seed) for seed in range(draws)]


def with_handovers(day: Day, handover_s: float, seed: int) -> RunFigures:
    late_s = np.random.default_rng(seed).uniform(0.0, handover_s, len(day.jobs))
    jobs = [
        replace(job, submit_s=job.submit_s + float(late), duration_s=job.duration_s + handover_s)
        for job, late in zip(day.jobs, late_s, strict=True)
    ]
    costs = replace(day.costs, restart_s=day.costs.restart_s + handover_s)
    slower = replace(day, jobs=sorted(jobs, key=lambda job: job.submit_s), costs=costs)
    outcome = simulate_deciders(scenario_of(slower)).outcome
    held_gpu_s = float((outcome.held_s * outcome.gpus).sum())
    handed_s = handover_s * np.maximum(outcome.starts - 1, 0)
    lost_gpu_s = float(((outcome.lost_s - handed_s) * outcome.gpus).sum())
    own = figures_of(outcome, lost_gpu_s / held_gpu_s if held_gpu_s else 0.0)
    return replace(own, mean_wait_s=own.mean_wait_s + handover_s + float(late_s.mean()))


def within(figures: RunFigures, runs: Sequence[RunFigures]) -> dict[str, bool]:
    """Return for each figure whether it lies in the range of the runs."""
    plain = [run.plain() for run in runs]
    return {
        name: bool(min(row[name] for row in plain) <= value <= max(row[name] for row in plain))
        for name, value in figures.plain().items()
    }


def range_of(runs: Sequence[RunFigures]) -> dict[str, list[float]]:
    """Return the least and the largest value of each figure."""
    plain = [run.plain() for run in runs]
    return {
        name: [min(row[name] for row in plain), max(row[name] for row in plain)]
        for name in plain[0]
    }


def wait_by_cause(
    kernel: RunFigures, deciders: RunFigures, delayed: Sequence[RunFigures], live: RunFigures
) -> dict[str, float]:
    """Return the parts of the difference of the mean waits of live and kernel, cluster s."""
    delayed_s = float(np.mean([run.mean_wait_s for run in delayed]))
    return {
        "rounds": round(deciders.mean_wait_s - kernel.mean_wait_s, 1),
        "handovers": round(delayed_s - deciders.mean_wait_s, 1),
        "rest": round(live.mean_wait_s - delayed_s, 1),
    }
