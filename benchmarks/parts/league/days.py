"""The days of traces on which all policies compete, each part on a pool of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.parts.policies.continuous import WARM_UP, Replay, is_shared, nodes_for, work_named
from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.replays import CLUSTERS, LOAD
from services.priority.core.history.distributions import BINS
from simulator.kernel.causal import distributions_of
from simulator.kernel.work import Work
from simulator.metrics.bootstrap import hours
from simulator.metrics.outcome import Bools, Floats, Ints, ScheduleOutcome
from simulator.workload.source import SYNTHETIC

COSTS = StopCosts(checkpoint_s=1800.0, restart_s=60.0)
TRACES: dict[str, tuple[str | None, ...]] = {
    "philly": (None,),
    "helios_venus": (None,),
    "alibaba_pai_2020": (None,),
    "msft_itp": CLUSTERS,
}
"""Clusters of each trace that never share GPUs; None: the whole trace."""
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class LeagueDays:
    """Parts of each cluster of a trace, and days of each, of which the last two fifths count."""

    parts: int = 2
    days: float = 5.0


def traces_here() -> list[str]:
    """Return the traces that this machine has; the synthetic one if there is none."""
    return [name for name in TRACES if is_shared(name)] or [SYNTHETIC]


def replays_of(trace: str, days: LeagueDays) -> list[Replay]:
    """Return the parts of each cluster, of jobs that the committed networks were not trained on.

    Parts begin evenly over the last two fifths of the trace's time. Raises TraceError for a trace
    that cannot be read.
    """
    work, tenants = work_named(trace)
    replays = []
    for cluster in TRACES.get(trace, (None,)):
        own = work if cluster is None else work.part(work.tenant == tenants.index(cluster))
        label = trace if cluster is None else f"{trace}/{cluster}"
        for number, part in enumerate(parts_of(own, days)):
            sizes, load = nodes_for(part, LOAD)
            replays.append(Replay(f"{label}#{number + 1}", part, sizes, load, COSTS))
    return replays


def parts_of(work: Work, days: LeagueDays) -> list[Work]:
    """Return the jobs of each part that has any."""
    first, last = int(work.submit_ms[0]), int(work.submit_ms[-1])
    evaluated_ms = (1.0 - WARM_UP) * (last - first)
    parts = []
    for number in range(days.parts):
        low = last - evaluated_ms * (1.0 - number / days.parts)
        high = low + days.days * DAY_MS
        parts.append(work.part((work.submit_ms >= low) & (work.submit_ms < high)))
    return [part for part in parts if len(part) > 1]


def counted(outcome: ScheduleOutcome) -> Bools:
    """Return the jobs that count: of the window, and able to fit into the pool."""
    jobs: Bools = outcome.in_window & outcome.fits
    return jobs


def units_of(outcomes: list[ScheduleOutcome]) -> Ints:
    """Return the hour of each job that counts; those of one part follow those of another."""
    units, offset = [], 0
    for outcome in outcomes:
        low, high = outcome.window_s
        units.append(hours(outcome.submit_s, low)[counted(outcome)] + offset)
        offset += int(np.ceil((high - low) / 3600.0))
    return np.concatenate(units)


def jct_of(outcomes: list[ScheduleOutcome]) -> Floats:
    return np.concatenate([outcome.jct_s[counted(outcome)] for outcome in outcomes])


def work_of(outcomes: list[ScheduleOutcome]) -> Floats:
    return np.concatenate([outcome.duration_s[counted(outcome)] for outcome in outcomes])


def predicted(replay: Replay, ended: ScheduleOutcome) -> Floats:
    """Return the distributions [jobs, BINS] that history gives, from ends under first come, first
    served.

    Policies of the queue learn from the ends that they bring about themselves.
    """
    ends_ms = np.where(ended.fits, np.nan_to_num(ended.end_s) * 1000.0, np.inf)
    never = np.iinfo(np.int64).max
    whole = np.where(np.isfinite(ends_ms), ends_ms, never).astype(np.int64)
    distributions = distributions_of(replay.work, whole)
    assert distributions.shape[1] == BINS
    return distributions
