"""The numbers of a pool's jobs as columns, so that 10,000 jobs are ordered without a loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from services.priority.core.caches.feature_cache import FeatureCache
from services.priority.core.caches.rest_cache import RestCache
from services.priority.core.history.distributions import BINS, Floats

Rows: TypeAlias = NDArray[np.intp]

FREE, WAITING, RUNNING, PARKED = 0, 1, 2, 3
IN_POOL = (WAITING, RUNNING)
COLUMNS = (
    "submit_ms",  # when it was submitted to admission
    "tenant",  # its number in `PriorityState.tenants`
    "tier",  # class, spot behind all of them: the order of placement's queue scan
    "gpus",  # of the gang as requested
    "workers",
    "preemptible",
    "restart_s",
    "checkpoint_interval_s",  # inf: no checkpoints
    "walltime_s",  # the user's estimate; nan: none
    "duration_s",  # the oracle's; nan: none
    "p10_s",  # of history, at its entry
    "p50_s",
    "p90_s",
    "mean_s",
    "low_s",  # calibrated p10, p50 and p90, at its entry
    "middle_s",
    "high_s",
    "samples",
    "kept_ms",  # wall ms of work in its last checkpoint
    "ran_ms",  # wall ms from start to stop, over earlier attempts
    "restarts",
    "left_s",  # expected rest of a job that goes on from `kept_ms`
    "gittins_s",  # and its Gittins rank there
    "since_ms",  # holds GPUs since; 0: holds none
    "go_ms",  # works since; 0: does not
    "held_gpus",  # as placed
    "ends_ms",  # when it should end by its own reports; 0: it made none
    "total_ms",  # wall ms of work, of all its starts, by its first report; 0: it made none
)
COLUMN = {name: index for index, name in enumerate(COLUMNS)}
_RAN, _KEPT, _RESTARTS = (COLUMN[name] for name in ("ran_ms", "kept_ms", "restarts"))
_SAMPLES = COLUMN["samples"]
FIRST_ROWS = 64


def _values(rows: int) -> Floats:
    return np.zeros((len(COLUMNS), rows))


@dataclass(slots=True, eq=False)
class JobTable:
    """A row per job; the rows of jobs that are gone are used again."""

    values: Floats = field(default_factory=lambda: _values(FIRST_ROWS))
    phase: NDArray[np.int8] = field(default_factory=lambda: np.zeros(FIRST_ROWS, np.int8))
    entered: NDArray[np.int64] = field(default_factory=lambda: np.zeros(FIRST_ROWS, np.int64))
    ids: NDArray[Any] = field(default_factory=lambda: np.zeros(FIRST_ROWS, object))
    distribution: Floats = field(default_factory=lambda: np.zeros((FIRST_ROWS, BINS)))
    free: list[int] = field(default_factory=lambda: list(range(FIRST_ROWS))[::-1])
    entries: int = 0
    known: int = field(default=0, compare=False)
    """Jobs that wait or run of which history has samples, as counted by `move`."""
    counted: int = field(default=0, compare=False)
    """Jobs that wait or run."""
    feature_cache: FeatureCache = field(default_factory=FeatureCache, compare=False, repr=False)
    rest_cache: RestCache = field(default_factory=RestCache, compare=False, repr=False)

    def add(self, job_id: str) -> int:
        """Add a job and return its row, filled with zeros."""
        if not self.free:
            self._grow()
        row = self.free.pop()
        self.ids[row] = job_id
        self.values[:, row] = 0.0
        self.feature_cache.forget(row)
        self.put_distribution(row, 0.0)
        self.phase[row] = PARKED
        self.entered[row] = self.entries
        self.entries += 1
        return row

    def move(self, row: int, phase: int) -> None:
        """Set the phase of a row; while it waits or runs its `samples` stay as they are."""
        before = self.phase[row]
        change = (phase in IN_POOL) - (before in IN_POOL)
        if change:
            self.counted += change
            self.known += change * bool(self.values[_SAMPLES, row] > 0)
        self.phase[row] = phase

    def drop(self, row: int) -> None:
        """Free a row."""
        self.move(row, FREE)
        self.ids[row] = 0
        self.values[:, row] = 0.0
        self.free.append(row)

    def get(self, row: int, column: str) -> float:
        return float(self.values[COLUMN[column], row])

    def totals(self, row: int) -> tuple[int, int, int]:
        """Return `ran_ms`, `kept_ms` and `restarts`."""
        values = self.values
        return int(values[_RAN, row]), int(values[_KEPT, row]), int(values[_RESTARTS, row])

    def put(self, row: int, **values: float) -> None:
        self.feature_cache.forget(row)
        columns = self.values
        for column, value in values.items():
            columns[COLUMN[column], row] = value

    def put_distribution(self, row: int, p: Floats | float) -> None:
        self.rest_cache.forget(row)
        self.distribution[row] = p

    def unordered(self, *phases: int) -> Rows:
        """Return the rows in these phases, in no order that means anything."""
        is_in = self.phase == phases[0]
        for phase in phases[1:]:
            is_in |= self.phase == phase
        rows: Rows = is_in.nonzero()[0]
        return rows

    def of(self, phase: int) -> Rows:
        """Return the rows in that phase, in the order of their entry."""
        rows = self.unordered(phase)
        return rows[np.argsort(self.entered[rows], kind="stable")]

    def _grow(self) -> None:
        rows = len(self.phase)
        self.values = np.concatenate((self.values, _values(rows)), axis=1)
        self.phase = np.concatenate((self.phase, np.zeros(rows, np.int8)))
        self.entered = np.concatenate((self.entered, np.zeros(rows, np.int64)))
        self.ids = np.concatenate((self.ids, np.zeros(rows, object)))
        self.distribution = np.concatenate((self.distribution, np.zeros((rows, BINS))))
        self.free = list(range(rows, 2 * rows))[::-1]

    def __eq__(self, other: object) -> bool:
        """Compare the rows: two folds of the same events have the same ones."""
        if not isinstance(other, JobTable):
            return NotImplemented
        return self.free == other.free and all(
            np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f")
            for mine, theirs in (
                (self.values, other.values),
                (self.phase, other.phase),
                (self.entered, other.entered),
                (self.ids, other.ids),
                (self.distribution, other.distribution),
            )
        )
