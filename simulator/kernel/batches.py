"""RLTune's protocol: batches of consecutive jobs on a small cluster, empty or warmed up before."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.kernel.run import Rules, simulate
from simulator.kernel.warm import learn_counts
from simulator.kernel.work import Ints, Work
from simulator.metrics.outcome import Floats, ScheduleOutcome
from simulator.metrics.policy_jobs import PolicyJobs

NODES = np.full(17, 8, np.int64)
"""RLTune's Helios cluster."""
EVALUATED = (0.6, 1.0)
"""Share of a trace's time from which batches are taken: the last 40 %."""
CONTENDED_S = 60.0
GATE_JOBS = 300
"""Jobs before a batch from which the share of large gangs is estimated."""


@dataclass(frozen=True, slots=True)
class JobBatch:
    """Consecutive jobs; the first `warm_up` of them are not counted."""

    work: Work
    warm_up: int
    counts: Floats
    large: float


def make_batches(
    work: Work,
    jobs: int,
    count: int | None,
    warm_up: int,
    sizes: Ints = NODES,
    period: tuple[float, float] = EVALUATED,
) -> list[JobBatch]:
    """Return batches spread evenly over that part of the trace's time, without jobs that never fit.

    Without `count` the batches follow each other, so that every job but the last few counts once.
    """
    fits = work.part(work.gang <= int(sizes.sum()))
    first, last = fits.submit_ms[0], fits.submit_ms[-1]
    edges = [first + share * (last - first) for share in period]
    low, high = np.searchsorted(fits.submit_ms, edges, side="left")
    if period[1] >= 1.0:
        high = len(fits)
    begin, end = max(int(low), warm_up), int(high) - jobs
    if count is None:
        starts = np.arange(begin, end + 1, jobs)
    else:
        starts = np.linspace(begin, end, count).astype(np.int64)
    return [make_batch(fits, int(start), jobs, warm_up, sizes) for start in np.unique(starts)]


def make_batch(work: Work, start: int, jobs: int, warm_up: int, sizes: Ints) -> JobBatch:
    """Return one batch with the history and the share of large gangs that precede it.

    History has the jobs that would have ended by then if they had run when they were submitted.
    """
    begin = start - warm_up
    seen = work.part(slice(max(0, begin - GATE_JOBS), begin)).gang
    large = float((seen > Rules().large_gang_share * sizes.sum()).mean()) if len(seen) else 0.0
    past = work.part(slice(0, begin))
    has_ended = past.submit_ms + past.duration_ms <= work.submit_ms[begin]
    counts = learn_counts(past.part(has_ended))
    return JobBatch(work.part(slice(begin, start + jobs)), warm_up, counts, large)


def run_batch(batch: JobBatch, rules: Rules, sizes: Ints = NODES) -> ScheduleOutcome:
    """Return the outcome of one batch under these rules."""
    return simulate(batch.work, sizes, rules, counts=batch.counts).outcome


def invert_walltimes(batch: JobBatch) -> JobBatch:
    """Return the batch with inverted walltimes, so that `sjf` takes the longest job first."""
    walltime_ms = batch.work.walltime_ms
    return replace(batch, work=replace(batch.work, walltime_ms=walltime_ms.max() + 1 - walltime_ms))


def collect_side(batches: list[JobBatch], outcomes: list[ScheduleOutcome]) -> PolicyJobs:
    """Return the counted jobs of all batches; a batch is a unit of time."""
    parts = [slice(batch.warm_up, None) for batch in batches]
    pairs = list(zip(outcomes, parts, strict=True))
    use = np.array([utilisation_of(o) for o in outcomes])
    return PolicyJobs(
        np.concatenate([(o.jct_s - o.duration_s)[part] for o, part in pairs]),
        np.concatenate([o.jct_s[part] for o, part in pairs]),
        np.concatenate([o.slowdown[part] for o, part in pairs]),
        np.concatenate([np.full(len(o) - p.start, i) for i, (o, p) in enumerate(pairs)]),
        use,
        use,
    )


def contended_batches(batches: list[JobBatch], fcfs: list[ScheduleOutcome]) -> list[int]:
    """Return indices of the batches in which jobs wait under blocking FCFS: in the others no order
    helps.

    The threshold, a mean wait of 60 s, was fixed before any measurement.
    """
    delays = [o.jct_s - o.duration_s for o in fcfs]
    means = [d[batch.warm_up :].mean() for batch, d in zip(batches, delays, strict=True)]
    return [index for index, mean in enumerate(means) if mean >= CONTENDED_S]


def utilisation_of(outcome: ScheduleOutcome) -> float:
    """Return work over capacity from the first submit to the last end, as RLTune measures it."""
    span_s = float(outcome.end_s.max() - outcome.submit_s.min())
    return float((outcome.gpus * outcome.duration_s).sum() / (outcome.capacity_gpus * span_s))
