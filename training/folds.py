"""Leave one trace out: short windows of all other traces, at costs of stops drawn at random.

Traces of one cluster are left out together. Of the others the first 60 % of time trains, and the
rest validates; the trace that is left out is not read at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shared.contracts.pools import LOG_SCORE_MARGIN
from simulator.kernel.batches import JobBatch, make_batch
from simulator.kernel.run import Exploration, KernelRun, Rules, simulate
from simulator.kernel.work import Ints, Work, build_work
from simulator.metrics.outcome import Floats, ScheduleOutcome
from simulator.workload.source import read_columns
from training.windows import FLOOR_S, jobs_between, nodes_for

FOLDS = {
    "helios": ("helios_venus", "helios_vc_users"),
    "philly": ("philly",),
    "msft_itp": ("msft_itp",),
    "alibaba_pai_2020": ("alibaba_pai_2020",),
}
"""Traces that are left out together, by cluster."""
SOURCES: tuple[tuple[str, str, str | None], ...] = (
    ("helios", "helios_venus", None),
    ("philly", "philly", None),
    ("msft_itp", "msft_itp", "cluster04"),
    ("msft_itp", "msft_itp", "cluster07"),
    ("alibaba_pai_2020", "alibaba_pai_2020", None),
)
"""Fold, trace and cluster of what is trained on; the clusters of ITP never share GPUs."""
TRAIN, VALIDATION = (0.0, 0.6), (0.6, 1.0)
LOADS = (0.85, 0.95, 1.05)
VALIDATED_AT = 0.9
WARM_UP, JOBS = 800, 2400
TRAINING_WINDOWS, VALIDATION_WINDOWS = 6, 2
"""Windows of each source."""
CHECKPOINT_S, RESTART_S = (60.0, 3600.0), (60.0, 600.0)
FIXED_SHARES = (0.0, 0.5, 0.9)
MAX_RATIO = 3.0
"""Bound of a ratio of delays: no single window dominates."""
BASE = Rules("gittins", preemption=True, preempt_margin=LOG_SCORE_MARGIN)
"""The policy that ships: a network has to be better."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Settings of the rules that say what stopping a job costs, under their names there."""

    checkpoint_s: float
    restart_s: float
    fixed_share: float

    def applied(self, rules: Rules) -> Rules:
        return replace(
            rules,
            checkpoint_s=self.checkpoint_s,
            restart_s=self.restart_s,
            fixed_share=self.fixed_share,
        )


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive jobs of a trace on nodes of their own; those of the warm-up are not counted."""

    name: str
    batch: JobBatch
    sizes: Ints

    def __len__(self) -> int:
        return len(self.batch.work)

    def run(self, rules: Rules, costs: Costs, explored: Exploration | None = None) -> KernelRun:
        own = replace(costs.applied(rules), large_at_start=self.batch.large)
        return simulate(
            self.batch.work, self.sizes, own, counts=self.batch.counts, explored=explored
        )

    def delay_s(self, outcome: ScheduleOutcome) -> float:
        """Return the mean of JCT less work over the counted jobs, and `FLOOR_S`."""
        delays = (outcome.jct_s - outcome.duration_s)[self.batch.warm_up :]
        return float(delays.mean()) + FLOOR_S


def draw_costs(random: np.random.Generator) -> Costs:
    """Return seconds that are uniform as logarithms, and one of the shares."""
    checkpoint_s = draw_seconds(random, CHECKPOINT_S)
    restart_s = draw_seconds(random, RESTART_S)
    return Costs(checkpoint_s, restart_s, float(random.choice(FIXED_SHARES)))


def draw_seconds(random: np.random.Generator, ends: tuple[float, float]) -> float:
    return math.exp(random.uniform(math.log(ends[0]), math.log(ends[1])))


def learned_rules(theta: Floats) -> Rules:
    """Return the rules of a network in the pools that it is compared in."""
    return replace(BASE, policy="learned", theta=theta)


def log_ratio(delay_s: float, base_s: float) -> float:
    """Return the logarithm of a bounded ratio: ten percent count alike in every window."""
    return math.log(min(MAX_RATIO, delay_s / base_s))


def windows_without(
    fold: str, period: tuple[float, float], count: int, loads: Sequence[float]
) -> list[Window]:
    """Return `count` windows of each trace but those of the fold, at these loads in turn."""
    if fold not in FOLDS:
        raise ValueError(f"fold: {fold!r}, must be one of {', '.join(FOLDS)}")
    return [
        window
        for own_fold, name, cluster in SOURCES
        if own_fold != fold
        for window in windows_of(name, cluster, period, count, loads)
    ]


def windows_of(
    name: str, cluster: str | None, period: tuple[float, float], count: int, loads: Sequence[float]
) -> list[Window]:
    columns = read_columns(name)
    work = build_work(columns)
    if cluster is not None:
        work = work.part(work.tenant == columns.tenants.index(cluster))
    starts = window_starts(work, period, count)
    label = f"{name}{'/' + cluster if cluster else ''}"
    return [
        cut(f"{label}@{loads[at % len(loads)]:g}#{at}", work, int(start), loads[at % len(loads)])
        for at, start in enumerate(starts)
    ]


def window_starts(work: Work, period: tuple[float, float], count: int) -> Ints:
    """Return the first counted job of each window, evenly over the jobs of the period.

    Raises ValueError where the period has too few jobs for one.
    """
    low, high = jobs_between(work, period)
    if high - low < WARM_UP + JOBS:
        raise ValueError(f"period: {period}, has {high - low} jobs, must be {WARM_UP + JOBS}")
    starts: Ints = np.linspace(low + WARM_UP, high - JOBS, count).astype(np.int64)
    return starts


def cut(name: str, work: Work, start: int, load: float) -> Window:
    """Return the window whose first counted job is `start`, at that load over all its jobs."""
    sizes = nodes_for(work.part(slice(start - WARM_UP, start + JOBS)), load)
    return Window(name, make_batch(work, start, JOBS, WARM_UP, sizes), sizes)
