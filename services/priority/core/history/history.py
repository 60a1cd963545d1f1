"""The run times of ended jobs by groups of similar jobs, and the estimate of a new one by them.

The sums are those of `distributions`, over arrays. Names and users are texts of tenants: so that a
pool's memory ends, only so many groups are kept, and each tenant forgets its own first.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.priority.core.history.distributions import (
    BINS,
    FADE,
    PRIOR,
    SMOOTHED,
    TRUST,
    VALUES,
    Floats,
    bin_of,
)
from services.priority.core.history.forgetting import lately_learnt
from services.priority.core.history.job_groups import GroupRows, HistoryGroup, KindOfJob, groups

QUANTILES = (0.1, 0.5, 0.9)
_VALUES_S: list[float] = VALUES.tolist()

LEARNT, KEEP, TRUSTED, COUNTS = 0, 1, 2, 3
"""Columns of a group's row; its counts begin at the last of them."""
FIRST_GROUPS = 64
GROUPS_MOST = 65_536
"""Groups that are kept, in 40 MB at most: nine thousand users with four names each have fewer."""
GROUPS_LEFT = 49_152
"""Groups that are kept when there were more: forgetting looks at all of them, so it is rare."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate for a job before it runs. `p` [BINS] is its distribution."""

    mean_s: float
    p10_s: float
    p50_s: float
    p90_s: float
    samples: float
    gittins_s: float
    """Gittins rank before it has run."""
    p: Floats
    ended: list[float]
    """Running sum of `p`."""


def _estimate(p: Floats, samples: float) -> Estimate:
    """Return `mean_left_s`, `quantile_s` and `gittins_s` of a job that has not run, in one pass."""
    ended = np.add.accumulate(p)
    spent = np.add.accumulate(p * VALUES)
    sums: list[float] = ended.tolist()
    mass = sums[-1]
    p10, p50, p90 = [_VALUES_S[bisect_left(sums, q * mass)] for q in QUANTILES]
    # These are `gittins_ranks` at half their cost: no chance of a job that has not run is 0.
    ranks = ended[-1:] - ended
    ranks *= VALUES
    ranks += spent
    ranks /= ended
    gittins = float(np.minimum.reduce(ranks))
    return Estimate(float(spent[-1]) / mass, p10, p50, p90, samples, gittins, p, sums)


@dataclass(slots=True, eq=False)
class History:
    """Counts of the ended jobs of one pool, in `GROUPS_MOST` groups at most.

    All groups are one array, so that those of a job are read and written in one operation.
    """

    rows: dict[HistoryGroup, int] = field(default_factory=dict)
    """Index of each group in `values`."""
    values: Floats = field(default_factory=lambda: np.zeros((FIRST_GROUPS, COUNTS + BINS)))
    """[any, 3 + BINS]: the number of the job that a group learnt last, the share of its counts kept
    at the next one, trust of the level, counts.
    """
    jobs: int = 0
    """Jobs that were learnt."""
    learnt: GroupRows = field(default_factory=GroupRows, compare=False, repr=False)

    @property
    def counts(self) -> dict[HistoryGroup, Floats]:
        """Counts [BINS] of each group."""
        return {group: self.values[row, COUNTS:] for group, row in self.rows.items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        count = len(self.rows)
        are_same = self.rows == other.rows and self.jobs == other.jobs
        return are_same and np.array_equal(self.values[:count], other.values[:count])

    def learn(
        self, tenant: str, user: str, name: str, gpus: float, run_s: float, command: str = ""
    ) -> None:
        """Add the run time of an ended job to all its groups."""
        at = bin_of(run_s)
        rows = self._rows_of((tenant, user, name, gpus, command))
        self.jobs += 1
        values = self.values.take(rows, 0)
        counts = values[:, COUNTS:]
        counts *= values[:, KEEP, None]
        counts += SMOOTHED[at]
        if at in (0, BINS - 1):
            counts[:, at] += 0.25
        values[:, LEARNT] = self.jobs
        self.values[rows] = values

    def estimate(
        self, tenant: str, user: str, name: str, gpus: float, command: str = ""
    ) -> Estimate:
        """Return bit for bit what `fill_prior` and `shrink` give.

        Sums go from the first bin to the last, as in `accumulate`; `sum` may add otherwise.
        """
        rows: Sequence[int] | NDArray[np.intp] | None
        job: KindOfJob = (tenant, user, name, gpus, command)
        rows = self.learnt.get(job)
        if rows is None:
            known = self.rows
            rows = [known[group] for group in groups(*job) if group in known]
            if not rows:
                return _estimate(PRIOR, 0.0)
        values = self.values.take(rows, 0)
        totals = np.add.accumulate(values[:, TRUSTED:], axis=1)[:, -1:]
        p = np.empty(BINS)
        wider = PRIOR
        # Arrays of one number: a float costs each operation twice as much.
        for counts, trust, total in zip(
            values[:, COUNTS:], values[:, TRUSTED:COUNTS], totals, strict=True
        ):
            np.multiply(wider, trust, p)
            np.add(p, counts, p)
            np.divide(p, total, p)
            wider = p
        return _estimate(p, math.fsum(counts.tolist()))

    def _rows_of(self, job: KindOfJob) -> NDArray[np.intp]:
        """Return the rows of all groups of such a job, which it adds where they are missing."""
        rows = self.learnt.get(job)
        if rows is None:
            named = [(group, level) for level, group in enumerate(groups(*job)) if group]
            # A kept kind lacks no group, so that what is forgotten does not depend on the cache.
            lacking = sum(group not in self.rows for group, _ in named)
            if lacking and len(self.rows) + lacking > GROUPS_MOST:
                self._forget()
            numbers = [self._row(group, level) for group, level in named]
            rows = self.learnt.keep(job, numbers)
        return rows

    def _row(self, group: HistoryGroup, level: int) -> int:
        row = self.rows.get(group)
        if row is None:
            row = self.rows[group] = len(self.rows)
            if row == len(self.values):
                self.values = np.concatenate((self.values, np.zeros_like(self.values)))
            self.values[row, KEEP] = 1.0 - 1.0 / FADE[level]
            self.values[row, TRUSTED] = TRUST[level]
        return row

    def _forget(self) -> None:
        """Forget the groups that learnt longest ago, of the tenants that have most."""
        learnt: list[float] = self.values[: len(self.rows), LEARNT].tolist()
        kept = lately_learnt(self.rows, learnt, GROUPS_LEFT)
        self.values = self.values[list(kept.values())]
        self.rows = {group: row for row, group in enumerate(kept)}
        self.learnt.clear()
