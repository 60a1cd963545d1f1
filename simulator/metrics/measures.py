"""Measures of one simulation: over the evaluation window's jobs, and over all jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.metrics.fairness import Fairness, fairness
from simulator.metrics.outcome import Bools, Floats, ScheduleOutcome

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and quantiles; NaN of no jobs."""

    mean: float
    median: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class JobMeasures:
    """Measures of a set of jobs.

    `unfinished` jobs are counted with their wait until the horizon; `never_fit` have no times
    and are in no spread. Both are failures of the run.
    """

    jobs: int
    unfinished: int
    never_fit: int
    jct_s: Spread
    wait_s: Spread
    queued_s: Spread
    slowdown: Spread
    waiting_share: float
    """Share of the jobs that waited more than 60 s for their first start."""
    preempted_share: float
    """Share of the jobs that were stopped at least once."""


@dataclass(frozen=True, slots=True)
class Measures:
    """All measures: `window` is for comparisons; `all` shows starvation outside it."""

    window: JobMeasures
    all: JobMeasures
    utilisation: float
    """GPU-seconds held in the window over what its GPUs could give."""
    productive: float
    """The same without lost work and restarts; NaN where the simulator does not know them."""
    fragmentation: float
    makespan_s: float
    """First submit to last end."""
    lost_share: float
    """Part of all GPU-seconds held that was lost to preemption and restarts."""
    preemptions: int
    fairness: Fairness


def measure(outcome: ScheduleOutcome) -> Measures:
    """Return all measures of an outcome."""
    all_jobs = np.ones(len(outcome), np.bool_)
    return Measures(
        window=measure_jobs(outcome, outcome.in_window),
        all=measure_jobs(outcome, all_jobs),
        utilisation=utilisation(outcome),
        productive=productive_utilisation(outcome),
        fragmentation=outcome.fragmentation,
        makespan_s=makespan_s(outcome),
        lost_share=lost_share(outcome),
        preemptions=int(np.maximum(outcome.starts - 1, 0).sum()),
        fairness=fairness(outcome),
    )


def measure_jobs(outcome: ScheduleOutcome, chosen: Bools) -> JobMeasures:
    """Return the measures of the `chosen` [jobs]."""
    counted = chosen & outcome.fits
    return JobMeasures(
        jobs=int(chosen.sum()),
        unfinished=int((counted & ~outcome.ended).sum()),
        never_fit=int((chosen & ~outcome.fits).sum()),
        jct_s=spread(outcome.jct_s[counted]),
        wait_s=spread(outcome.wait_s[counted]),
        queued_s=spread(outcome.queued_s[counted]),
        slowdown=spread(outcome.slowdown[counted]),
        waiting_share=share(outcome.wait_s[counted] > 60.0),
        preempted_share=share(outcome.starts[counted] > 1),
    )


def spread(values: Floats) -> Spread:
    """Return mean and quantiles, NaN of no values."""
    if not values.size:
        return Spread(NAN, NAN, NAN, NAN)
    median, p90, p99 = np.percentile(values, (50, 90, 99))
    return Spread(float(values.mean()), float(median), float(p90), float(p99))


def share(flags: Bools) -> float:
    """Return the share of True, NaN of no values."""
    return float(flags.mean()) if flags.size else NAN


def utilisation(outcome: ScheduleOutcome) -> float:
    """Return GPU-seconds held in the window over its capacity."""
    low, high = outcome.window_s
    offered = outcome.capacity_gpus * (high - low)
    return outcome.busy_gpu_s / offered if offered > 0 else NAN


def productive_utilisation(outcome: ScheduleOutcome) -> float:
    """Return GPU-seconds held in the window that kept work, over its capacity.

    A loss counts at the end of its attempt, so one that ends after the window is not in it.
    """
    low, high = outcome.window_s
    offered = outcome.capacity_gpus * (high - low)
    if outcome.lost_by_hour is None or offered <= 0:
        return NAN
    return float((outcome.held_by_hour - outcome.lost_by_hour).sum() / offered)


def makespan_s(outcome: ScheduleOutcome) -> float:
    """Return the time from the first submit to the last end."""
    if not outcome.ended.any():
        return NAN
    return float(np.nanmax(outcome.end_s) - outcome.submit_s.min())


def lost_share(outcome: ScheduleOutcome) -> float:
    """Return the share of GPU-seconds held that was lost."""
    held = float((outcome.held_s * outcome.gpus).sum())
    return float((outcome.lost_s * outcome.gpus).sum()) / held if held > 0 else 0.0


def offered_load(
    submit_s: Floats,
    duration_s: Floats,
    gpus: Floats,
    capacity_gpus: float,
    window_s: tuple[float, float],
) -> float:
    """Return the work submitted in the window over its capacity; 1 fills it."""
    low, high = window_s
    within = (submit_s >= low) & (submit_s < high)
    work = float((duration_s[within] * gpus[within]).sum())
    return work / (capacity_gpus * (high - low)) if high > low else NAN
