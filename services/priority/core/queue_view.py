"""The waiting and the running jobs of a pool as arrays, for policies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.priority.core.feature_cache import FeatureCache
from services.priority.core.history import Floats
from services.priority.core.table import COLUMN, RUNNING, WAITING, JobTable, Rows

NO_ROWS: Rows = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class Clock:
    """Converts wall ms to cluster seconds of a pool."""

    now: int
    origin: int
    """ms: submission of the pool's first job"""
    time_scale: float


class QueueView:
    """`n` jobs, first those that wait in the order of their entry, then those that hold GPUs.

    Arrays are float64 of shape [n] unless said otherwise; times are cluster seconds and GPUs are
    devices. `now_s` and `submit_s` count from the submission of the pool's first job. A column is
    gathered on first use: most policies need three of them.
    """

    feature_cache: FeatureCache | None = None
    """Features of the table's rows; None for a view without a table."""

    def __init__(
        self, table: JobTable, clock: Clock, capacity_gpus: float, waiting: Rows, holding: Rows
    ) -> None:
        self._table = table
        self._clock = clock
        self.feature_cache = table.feature_cache
        self.capacity_gpus = capacity_gpus
        """GPUs of the present nodes."""
        self.waiting = len(waiting)
        """Number of waiting jobs: the first ones."""
        self.rows = np.concatenate((waiting, holding)) if len(holding) else waiting
        """Row of each job in the table and in `distributions`."""
        self.distributions = table.distribution
        """[any, BINS]: history's bins of jobs, see `history.VALUES`."""

    @classmethod
    def of_columns(cls, **columns: object) -> QueueView:
        """Return a view without a table: every column that is used has to be given."""
        view = cls.__new__(cls)
        vars(view).update(columns)
        return view

    def part(self, waiting: Rows, holding: Rows) -> QueueView:
        """Return a view of some of the jobs at the same moment."""
        return QueueView(self._table, self._clock, self.capacity_gpus, waiting, holding)

    @property
    def time_scale(self) -> float:
        return self._clock.time_scale

    @property
    def rows_most(self) -> int:
        """Number of rows of the table."""
        return len(self._table.phase)

    def _of(self, column: str) -> Floats:
        values: Floats = self._table.values[COLUMN[column]][self.rows]
        return values

    def _seconds(self, wall_ms: Floats) -> Floats:
        return wall_ms / 1000.0 * self._clock.time_scale

    @cached_property
    def now_s(self) -> float:
        return (self._clock.now - self._clock.origin) / 1000.0 * self._clock.time_scale

    @cached_property
    def used_gpus(self) -> float:
        """GPUs held by jobs, as placed."""
        return float(self._of("held_gpus").sum())

    @cached_property
    def job_ids(self) -> NDArray[Any]:
        """str [n]"""
        return self._table.ids[self.rows]

    @cached_property
    def running(self) -> NDArray[np.bool_]:
        running = np.zeros(len(self.rows), np.bool_)
        running[self.waiting :] = True
        return running

    @cached_property
    def tenant(self) -> NDArray[np.intp]:
        return self._of("tenant").astype(np.intp)

    @cached_property
    def submit_s(self) -> Floats:
        return self._seconds(self._of("submit_ms") - self._clock.origin)

    @cached_property
    def wait_s(self) -> Floats:
        """Since submission, of a running job as well."""
        return self._seconds(self._clock.now - self._of("submit_ms"))

    @cached_property
    def _work_ms(self) -> Floats:
        go_ms = self._of("go_ms")
        return np.where(go_ms > 0, self._clock.now - go_ms, 0.0)

    @cached_property
    def since_go_s(self) -> Floats:
        """Time since the start; 0 while a job waits or its workers are prepared or stopped."""
        return self._seconds(self._work_ms)

    @cached_property
    def kept_s(self) -> Floats:
        """Work in its last checkpoint."""
        return self._seconds(self._of("kept_ms"))

    @cached_property
    def attained_s(self) -> Floats:
        """`kept_s + since_go_s`"""
        return self._seconds(self._of("kept_ms") + self._work_ms)

    @cached_property
    def ran_s(self) -> Floats:
        """From start to stop over earlier attempts, lost work included."""
        return self._seconds(self._of("ran_ms"))

    @cached_property
    def tier(self) -> Floats:
        """0 is the highest class, from 4 on spot: placement goes tier by tier."""
        return self._of("tier")

    @cached_property
    def gpus(self) -> Floats:
        """GPUs of the whole gang, as requested."""
        return self._of("gpus")

    @cached_property
    def workers(self) -> Floats:
        return self._of("workers")

    @cached_property
    def preemptible(self) -> Floats:
        """1 or 0"""
        return self._of("preemptible")

    @cached_property
    def restart_s(self) -> Floats:
        return self._of("restart_s")

    @cached_property
    def checkpoint_interval_s(self) -> Floats:
        """inf: no checkpoints are made."""
        return self._of("checkpoint_interval_s")

    @cached_property
    def restarts(self) -> Floats:
        return self._of("restarts")

    @cached_property
    def walltime_s(self) -> Floats:
        """The user's estimate; nan: none was given."""
        return self._of("walltime_s")

    @cached_property
    def duration_s(self) -> Floats:
        """For the source `oracle` alone; nan: unknown."""
        return self._of("duration_s")

    @cached_property
    def p10_s(self) -> Floats:
        return self._of("p10_s")

    @cached_property
    def p50_s(self) -> Floats:
        return self._of("p50_s")

    @cached_property
    def p90_s(self) -> Floats:
        return self._of("p90_s")

    @cached_property
    def mean_s(self) -> Floats:
        return self._of("mean_s")

    @cached_property
    def samples(self) -> Floats:
        """0: without history, and the quantiles are the prior's."""
        return self._of("samples")

    @cached_property
    def left_kept_s(self) -> Floats:
        """Expected rest by history of a job that goes on from `kept_s`."""
        return self._of("left_s")

    @cached_property
    def gittins_kept_s(self) -> Floats:
        """Its Gittins rank there."""
        return self._of("gittins_s")

    @cached_property
    def base_score(self) -> Floats:
        """Scores of the base policy, higher first; filled in by `ranking.rank`."""
        return np.zeros(len(self.rows))

    @property
    def distribution(self) -> Floats:
        """[n, BINS], a copy; code that needs few rows takes them from `distributions`."""
        return self.distributions[self.rows]


def view_of(table: JobTable, clock: Clock, capacity_gpus: float) -> QueueView:
    """Return a view of all jobs of the table that wait or hold GPUs."""
    return QueueView(table, clock, capacity_gpus, table.of(WAITING), table.of(RUNNING))


def ids_and_scores(
    view: QueueView, scores: Floats, places: list[int]
) -> Iterable[tuple[str, float]]:
    """Return job id and score of the jobs at those places."""
    if not places:
        return ()
    return zip(view.job_ids[places].tolist(), scores[places].tolist(), strict=True)
