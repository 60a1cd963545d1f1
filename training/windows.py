"""Windows of real traces to train on: the first part of their time, never the last 40 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.kernel.batches import NODES, JobBatch, collect_side, make_batches, run_batch
from simulator.kernel.run import Rules, simulate
from simulator.kernel.work import Ints, Work, build_work
from simulator.workload.rows import NODE_GPUS
from simulator.workload.source import read_columns

TRAIN = (0.0, 0.45)
VALIDATION = (0.45, 0.60)
"""Shares of a trace's time; the rest is for evaluation alone."""
WARM_UP = 0.3
"""Share of a training window's time that fills pool and history, and is not counted."""
FLOOR_S = 60.0
"""Delay added to all: differences below it hardly count."""
SOURCES: tuple[tuple[str, str | None], ...] = (
    ("helios_venus", None),
    ("philly", None),
    ("msft_itp", None),
    ("msft_itp", "cluster04"),
    ("msft_itp", "cluster07"),
    ("alibaba_pai_2020", None),
)
"""Trace and, where its tenants are clusters of their own, the cluster."""
BATCH_SOURCE, BATCH_JOBS, BATCH_COUNT = "helios_venus", 256, 32


@dataclass(frozen=True, slots=True)
class TrainingWindow:
    """Jobs of a trace up to some time, on a pool of their own; the last ones are counted."""

    name: str
    work: Work
    sizes: Ints
    counted: slice

    def delay_s(self, rules: Rules) -> float:
        """Return the mean of JCT less work over the counted jobs."""
        outcome = simulate(self.work, self.sizes, rules).outcome
        return float((outcome.jct_s - outcome.duration_s)[self.counted].mean())


@dataclass(frozen=True, slots=True)
class BatchWindow:
    """Short queues that begin on an empty cluster, as in RLTune's protocol."""

    name: str
    batches: Sequence[JobBatch]

    def delay_s(self, rules: Rules) -> float:
        ran = [
            run_batch(batch, replace(rules, large_at_start=batch.large)) for batch in self.batches
        ]
        return float(collect_side(list(self.batches), ran).delay_s.mean())


def training_windows(loads: Sequence[float]) -> list[TrainingWindow]:
    begin, end = TRAIN
    warm = begin + WARM_UP * (end - begin)
    return [make_window(source, (warm, end), load) for source in SOURCES for load in loads]


def validation_windows(load: float) -> list[TrainingWindow]:
    return [make_window(source, VALIDATION, load) for source in SOURCES]


def make_batch_window(period: tuple[float, float]) -> BatchWindow:
    work = build_work(read_columns(BATCH_SOURCE))
    batches = make_batches(work, BATCH_JOBS, BATCH_COUNT, 0, NODES, period)
    return BatchWindow(f"{BATCH_SOURCE}/batches-{BATCH_JOBS}", batches)


def make_window(
    source: tuple[str, str | None], counted: tuple[float, float], load: float
) -> TrainingWindow:
    """Return a window from the trace's begin, with the requested load while it is counted."""
    name, cluster = source
    columns = read_columns(name)
    work = build_work(columns)
    if cluster is not None:
        work = work.part(work.tenant == columns.tenants.index(cluster))
    low, high = jobs_between(work, counted)
    sizes = nodes_for(work.part(slice(low, high)), load)
    label = f"{name}{'/' + cluster if cluster else ''}@{load}"
    return TrainingWindow(label, work.part(slice(0, high)), sizes, slice(low, high))


def jobs_between(work: Work, period: tuple[float, float]) -> tuple[int, int]:
    """Return the range of jobs submitted in these shares of the trace's time."""
    first, last = work.submit_ms[0], work.submit_ms[-1]
    edges = [first + share * (last - first) for share in period]
    low, high = np.searchsorted(work.submit_ms, edges)
    return int(low), int(high)


def nodes_for(work: Work, load: float) -> Ints:
    """Return 8-GPU nodes that have the requested load and hold the largest gang."""
    span_ms = max(1, int(work.submit_ms[-1] - work.submit_ms[0]))
    gpus = float((work.gang * work.duration_ms).sum()) / span_ms / load
    least = int(np.ceil(work.gang.max() / NODE_GPUS))
    return np.full(max(least, round(gpus / NODE_GPUS)), NODE_GPUS, np.int64)
