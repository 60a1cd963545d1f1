"""Shares of time by job and GPU type as linear programs, solved by OR-tools' GLOP.

Gavel (OSDI'20), section 4: x[job, type] is the part of the time that the job spends on the type;
sum over types at most 1, sum over jobs of gang size times x at most the GPUs of the type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from ortools.linear_solver import pywraplp

Floats: TypeAlias = npt.NDArray[np.float64]

BINDING = 1e-9
"""Dual value above which a job's level cannot rise."""


class TimeShares:
    """The program: `rates` [jobs, types], `gangs` [jobs], `capacity` [types]."""

    def __init__(self, rates: Floats, gangs: Floats, capacity: Floats) -> None:
        self.rates = rates
        self.solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        jobs, types = rates.shape
        infinity = self.solver.infinity()
        self.shares = [
            [self.solver.NumVar(0.0, 1.0, "") for _ in range(types)] for _ in range(jobs)
        ]
        for own in self.shares:
            self._at_most(1.0, [(share, 1.0) for share in own])
        for number in range(types):
            terms = [(self.shares[job][number], float(gangs[job])) for job in range(jobs)]
            self._at_most(float(capacity[number]), terms)
        self.level = self.solver.NumVar(-infinity, infinity, "")
        self.objective = self.solver.Objective()

    def max_min(self, scale: Floats, fillings: int = 1) -> Floats:
        """Return the shares that maximise the least of scale [jobs] times rate.

        With more `fillings`, jobs that cannot rise are fixed at their level and the least of the
        others is maximised, so many times (water filling). At last the sum is maximised, with all
        levels kept. A job without any rate has no level.
        """
        rows = self._level_rows(scale)
        self.objective.Clear()
        self.objective.SetCoefficient(self.level, 1.0)
        self.objective.SetMaximization()
        for _ in range(fillings):
            if not rows or not self._solve():
                break
            level = self.level.solution_value()
            bound = [job for job, row in rows.items() if abs(row.dual_value()) > BINDING]
            for job in bound or list(rows):
                self._fix(rows.pop(job), level)
        else:
            for row in rows.values():
                self._fix(row, level)
        return self.most(self.rates * scale[:, None])

    def most(self, worth: Floats) -> Floats:
        """Return the shares that maximise the sum of worth [jobs, types] times share."""
        self.objective.Clear()
        for own, values in zip(self.shares, worth.tolist(), strict=True):
            for share, value in zip(own, values, strict=True):
                self.objective.SetCoefficient(share, value)
        self.objective.SetMaximization()
        self._solve()
        return self.values()

    def values(self) -> Floats:
        shares = [[share.solution_value() for share in own] for own in self.shares]
        return np.clip(np.array(shares, np.float64).reshape(self.rates.shape), 0.0, 1.0)

    def _solve(self) -> bool:
        return bool(self.solver.Solve() == pywraplp.Solver.OPTIMAL)

    def _level_rows(self, scale: Floats) -> dict[int, Any]:
        """Return a row per job that has a rate: scale times rate is at least the level."""
        rows: dict[int, Any] = {}
        for job in np.flatnonzero(self.rates.max(axis=1) > 0).tolist():
            row = self.solver.Constraint(0.0, self.solver.infinity())
            for share, rate in zip(self.shares[job], self.rates[job].tolist(), strict=True):
                row.SetCoefficient(share, rate * float(scale[job]))
            row.SetCoefficient(self.level, -1.0)
            rows[job] = row
        return rows

    def _fix(self, row: Any, level: float) -> None:
        """Keep the job of the row at the level, at least."""
        row.SetCoefficient(self.level, 0.0)
        row.SetLb(level * (1.0 - BINDING))

    def _at_most(self, limit: float, terms: Sequence[tuple[Any, float]]) -> None:
        row = self.solver.Constraint(-self.solver.infinity(), limit)
        for share, factor in terms:
            row.SetCoefficient(share, factor)


def proportional_rates(rates: Floats, capacity: Floats) -> Floats:
    """Return each job's rate with its time spread over types as their GPUs are."""
    proportional: Floats = rates @ (capacity / capacity.sum())
    return proportional


def isolated_rates(rates: Floats, gangs: Floats, capacity: Floats) -> Floats:
    """Return each job's rate with 1/n of each type's GPUs for itself, as a gang."""
    part = capacity[None, :] / len(rates) / gangs[:, None]
    total = np.maximum(part.sum(axis=1, keepdims=True), 1.0)
    isolated: Floats = (rates * part / total).sum(axis=1)
    return isolated
