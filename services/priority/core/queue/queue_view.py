"""The waiting and the running jobs of a pool as arrays, for policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from services.priority.core.caches.feature_cache import FeatureCache
from services.priority.core.caches.rest_cache import RestCache
from services.priority.core.history.distributions import Floats
from services.priority.core.queue.reported import DOUBT
from services.priority.core.queue.table import COLUMN, RUNNING, WAITING, JobTable, Rows

NO_ROWS: Rows = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class Clock:
    """Converts wall ms to cluster seconds of a pool."""

    now: int
    origin: int
    """ms: submission of the pool's first job"""
    time_scale: float


T = TypeVar("T")


class column(Generic[T]):
    """A property that is computed on first use: `cached_property` without its lock, which costs
    more than most columns.
    """

    def __init__(self, compute: Callable[[QueueView], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, view: None, owner: type) -> column[T]: ...
    @overload
    def __get__(self, view: QueueView, owner: type) -> T: ...
    def __get__(self, view: QueueView | None, owner: type) -> column[T] | T:
        if view is None:
            return self
        value = view.__dict__[self._name] = self._compute(view)
        return value


class QueueView:
    """`n` jobs, first those that wait in the order of their entry, then those that hold GPUs.

    Arrays are float64 of shape [n] unless said otherwise; times are cluster seconds and GPUs are
    devices. `now_s` and `submit_s` count from the submission of the pool's first job. A column is
    gathered on first use: most policies need three of them.
    """

    feature_cache: FeatureCache | None = None
    """Features of the table's rows; None for a view without a table."""
    rest_cache: RestCache | None = None

    def __init__(
        self, table: JobTable, clock: Clock, capacity_gpus: float, waiting: Rows, holding: Rows
    ) -> None:
        self._table = table
        self._clock = clock
        self.feature_cache = table.feature_cache
        self.rest_cache = table.rest_cache
        self.capacity_gpus = capacity_gpus
        """GPUs of the present nodes."""
        self.waiting = len(waiting)
        """Number of waiting jobs: the first ones."""
        self.rows = (
            np.concatenate((waiting, holding))
            if len(waiting) and len(holding)
            else (waiting if len(waiting) else holding)
        )
        """Row of each job in the table and in `distributions`."""
        self.distributions = table.distribution
        """[any, BINS]: history's bins of jobs, see `history.VALUES`."""

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

    @column
    def now_s(self) -> float:
        return (self._clock.now - self._clock.origin) / 1000.0 * self._clock.time_scale

    @column
    def used_gpus(self) -> float:
        """GPUs held by jobs, as placed."""
        return float(self._of("held_gpus").sum())

    @column
    def job_ids(self) -> NDArray[Any]:
        """str [n]"""
        return self._table.ids[self.rows]

    @column
    def running(self) -> NDArray[np.bool_]:
        running = np.zeros(len(self.rows), np.bool_)
        running[self.waiting :] = True
        return running

    @column
    def tenant(self) -> NDArray[np.intp]:
        return self._of("tenant").astype(np.intp)

    @column
    def submit_s(self) -> Floats:
        return self._seconds(self._of("submit_ms") - self._clock.origin)

    @column
    def wait_s(self) -> Floats:
        """Since submission, of a running job as well; 0 where admission's clock is ahead."""
        return np.maximum(self._seconds(self._clock.now - self._of("submit_ms")), 0.0)

    @column
    def go_ms(self) -> Floats:
        """Return the time at which it began to work, wall ms; 0: it does not."""
        return self._of("go_ms")

    @column
    def reported_left_s(self) -> Floats:
        """Rest of a running job by its own reports; nan: none, or it ran past them."""
        left_ms = self._of("ends_ms") - self._clock.now
        return np.where(left_ms > 0, self._seconds(left_ms), np.nan)

    @column
    def believed_left_s(self) -> Floats:
        """The same as far as ranks believe it, see `reported`."""
        total_s = self._seconds(self._of("total_ms"))
        return np.maximum(self.reported_left_s, DOUBT * np.abs(total_s - self.attained_s))

    @column
    def _work_ms(self) -> Floats:
        return np.where(self.go_ms > 0, self._clock.now - self.go_ms, 0.0)

    @column
    def _worked_ms(self) -> Floats:
        """Of `_work_ms` without the restart, which a start after an interrupted one pays first."""
        restart_ms = np.rint(self._of("restart_s") * 1000 / self._clock.time_scale)
        paid_ms = np.where(self._of("restarts") > 0, restart_ms, 0.0)
        return np.maximum(0.0, self._work_ms - paid_ms)

    @column
    def since_go_s(self) -> Floats:
        """Time since the start; 0 while a job waits or its workers are prepared or stopped."""
        return self._seconds(self._work_ms)

    @column
    def kept_s(self) -> Floats:
        """Work in its last checkpoint."""
        return self._seconds(self._of("kept_ms"))

    @column
    def attained_s(self) -> Floats:
        """Work in its last checkpoint and since its start; a restart is no work."""
        return self._seconds(self._of("kept_ms") + self._worked_ms)

    @column
    def ran_s(self) -> Floats:
        """From start to stop over earlier attempts, lost work included."""
        return self._seconds(self._of("ran_ms"))

    @column
    def tier(self) -> Floats:
        """0 is the highest class, from 4 on spot: placement goes tier by tier."""
        return self._of("tier")

    @column
    def gpus(self) -> Floats:
        """GPUs of the whole gang, as requested."""
        return self._of("gpus")

    @column
    def workers(self) -> Floats:
        return self._of("workers")

    @column
    def preemptible(self) -> Floats:
        """1 or 0"""
        return self._of("preemptible")

    @column
    def restart_s(self) -> Floats:
        return self._of("restart_s")

    @column
    def checkpoint_interval_s(self) -> Floats:
        """inf: no checkpoints are made."""
        return self._of("checkpoint_interval_s")

    @column
    def restarts(self) -> Floats:
        return self._of("restarts")

    @column
    def walltime_s(self) -> Floats:
        """The user's estimate; nan: none was given."""
        return self._of("walltime_s")

    @column
    def duration_s(self) -> Floats:
        """For the source `oracle` alone; nan: unknown."""
        return self._of("duration_s")

    @column
    def p10_s(self) -> Floats:
        return self._of("p10_s")

    @column
    def p50_s(self) -> Floats:
        return self._of("p50_s")

    @column
    def p90_s(self) -> Floats:
        return self._of("p90_s")

    @column
    def mean_s(self) -> Floats:
        return self._of("mean_s")

    @column
    def samples(self) -> Floats:
        """0: without history, and the quantiles are the prior's."""
        return self._of("samples")

    @column
    def left_kept_s(self) -> Floats:
        """Expected rest by history of a job that goes on from `kept_s`."""
        return self._of("left_s")

    @column
    def gittins_kept_s(self) -> Floats:
        """Its Gittins rank there."""
        return self._of("gittins_s")

    @column
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
