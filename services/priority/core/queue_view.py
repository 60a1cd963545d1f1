"""What a policy sees: the waiting and the running jobs of a pool as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.priority.core.table import COLUMN, RUNNING, WAITING, Floats, Rows, Table


@dataclass(frozen=True, slots=True)
class QueueView:
    """`n` jobs, first those that wait in the order of their entry, then those that hold GPUs.

    Arrays are float64 of shape [n] unless said otherwise; times are cluster seconds and GPUs are
    devices. `now_s` and `submit_s` count from the submission of the pool's first job.
    """

    now_s: float
    capacity_gpus: float
    """Of the nodes that are there."""
    used_gpus: float
    """Held by jobs, as placed."""
    waiting: int
    """The first so many jobs wait."""

    job_ids: NDArray[Any]
    """str [n]"""
    running: NDArray[np.bool_]
    tenant: NDArray[np.intp]
    tier: Floats
    """0 is the highest class, 4 is spot: placement goes tier by tier."""
    submit_s: Floats
    wait_s: Floats
    """Since submission, of a running job as well."""
    gpus: Floats
    """Of the whole gang, as asked for."""
    workers: Floats
    preemptible: Floats
    """1 or 0"""
    restart_s: Floats
    checkpoint_interval_s: Floats
    """inf: no checkpoints are made."""
    since_go_s: Floats
    """0 of a job that does not work: it waits, or its workers are being prepared or stopped."""
    kept_s: Floats
    """Work in its last checkpoint."""
    attained_s: Floats
    """`kept_s + since_go_s`"""
    ran_s: Floats
    """From go to stop over earlier attempts, lost work included."""
    restarts: Floats

    walltime_s: Floats
    """The user's estimate; nan: none was given."""
    duration_s: Floats
    """For the source `oracle` alone; nan: unknown."""
    p10_s: Floats
    p50_s: Floats
    p90_s: Floats
    mean_s: Floats
    samples: Floats
    """0: history knows nothing and the quantiles are the prior's."""
    left_kept_s: Floats
    """Expected rest by history of a job that goes on from `kept_s`."""
    gittins_kept_s: Floats
    """Its Gittins rank there."""

    base_score: Floats
    """Of the base policy, higher first; filled in by who ranks."""
    rows: Rows
    """Of each job in `distributions`."""
    distributions: Floats
    """[any, BINS]: history's bins of jobs, see `history.VALUES`."""

    @property
    def distribution(self) -> Floats:
        """[n, BINS], a copy; what has only few rows to look at takes them from `distributions`."""
        return self.distributions[self.rows]


@dataclass(frozen=True, slots=True)
class Clock:
    """How wall ms become cluster seconds of a pool."""

    now: int
    origin: int
    """ms: submission of the pool's first job"""
    time_scale: float


def view_of(table: Table, clock: Clock, capacity_gpus: float) -> QueueView:
    """One gather of all columns: their rows are the arrays of the view."""
    waiting, holding = table.of(WAITING), table.of(RUNNING)
    rows = np.concatenate((waiting, holding))
    block = np.take(table.values, rows, axis=1)

    def of(column: str) -> Floats:
        found: Floats = block[COLUMN[column]]
        return found

    scale, now = clock.time_scale, clock.now
    submit_ms, go_ms, kept_ms = of("submit_ms"), of("go_ms"), of("kept_ms")
    work_ms = np.where(go_ms > 0, now - go_ms, 0.0)
    running = np.zeros(len(rows), np.bool_)
    running[len(waiting) :] = True
    return QueueView(
        now_s=(now - clock.origin) / 1000.0 * scale,
        capacity_gpus=capacity_gpus,
        used_gpus=float(of("held_gpus").sum()),
        waiting=len(waiting),
        job_ids=table.ids[rows],
        running=running,
        tenant=of("tenant").astype(np.intp),
        tier=of("tier"),
        submit_s=(submit_ms - clock.origin) / 1000.0 * scale,
        wait_s=(now - submit_ms) / 1000.0 * scale,
        gpus=of("gpus"),
        workers=of("workers"),
        preemptible=of("preemptible"),
        restart_s=of("restart_s"),
        checkpoint_interval_s=of("checkpoint_interval_s"),
        since_go_s=work_ms / 1000.0 * scale,
        kept_s=kept_ms / 1000.0 * scale,
        attained_s=(kept_ms + work_ms) / 1000.0 * scale,
        ran_s=of("ran_ms") / 1000.0 * scale,
        restarts=of("restarts"),
        walltime_s=of("walltime_s"),
        duration_s=of("duration_s"),
        p10_s=of("p10_s"),
        p50_s=of("p50_s"),
        p90_s=of("p90_s"),
        mean_s=of("mean_s"),
        samples=of("samples"),
        left_kept_s=of("left_s"),
        gittins_kept_s=of("gittins_s"),
        base_score=np.zeros(len(rows)),
        rows=rows,
        distributions=table.distribution,
    )
