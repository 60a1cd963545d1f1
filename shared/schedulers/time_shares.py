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
SLACK = 1e-7
"""Part of a level by which a job may fall below it later, where rows are scaled."""
WIDE = 1e7
"""Ratio of the most that two jobs can reach from which rows are scaled."""
DUAL_SIMPLEX = "use_dual_simplex: true"


class TimeShares:
    """The program: `rates` [jobs, types], `gangs` [jobs], `capacity` [types].

    Where levels of jobs differ by many orders of magnitude GLOP calls it abnormal or infeasible.
    Then the program is solved anew with scaled rows (`is_scaled`): each is divided by the most that
    its job can reach, and levels count in units of the least such most.
    """

    def __init__(
        self, rates: Floats, gangs: Floats, capacity: Floats, is_scaled: bool = False
    ) -> None:
        self.rates, self.gangs, self.capacity = rates, gangs, capacity
        self.is_scaled = is_scaled
        self.last: Floats | None = None
        """Shares of the last program that was solved."""
        self.solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self.solver.SuppressOutput()
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
        self._coefficients: dict[int, float] = {}
        """By job, what its level counts in its row."""
        self.level = self.solver.NumVar(-infinity, infinity, "")
        self.objective = self.solver.Objective()

    def max_min(self, scale: Floats, fillings: int = 1) -> Floats:
        """Return the shares that maximise the least of scale [jobs] times rate.

        With more `fillings`, jobs that cannot rise are fixed at their level and the least of the
        others is maximised, so many times (water filling). At last the sum is maximised, with all
        levels kept. A job without any rate has no level.
        """
        most = (self.rates * scale[:, None]).max(axis=1, initial=0.0)
        known = most[most > 0]
        is_wide = bool(known.max(initial=0.0) > WIDE * known.min(initial=np.inf))
        shares = None if is_wide else self._max_min(scale, fillings)
        if shares is not None:
            return shares
        scaled = TimeShares(self.rates, self.gangs, self.capacity, is_scaled=True)
        shares = scaled._max_min(scale, fillings)
        if shares is not None:
            return shares
        if scaled.last is not None:
            return scaled.last
        return equal_shares(self.rates, self.gangs, self.capacity)

    def _max_min(self, scale: Floats, fillings: int) -> Floats | None:
        """Return the shares; None if a program was not solved."""
        rows = self._level_rows(scale)
        self.objective.Clear()
        self.objective.SetCoefficient(self.level, 1.0)
        self.objective.SetMaximization()
        for _ in range(fillings):
            if not rows:
                break
            if not self._solve():
                return None
            level = self.level.solution_value()
            bound = [job for job, row in rows.items() if abs(row.dual_value()) > BINDING]
            for job in bound or list(rows):
                self._fix(rows.pop(job), level * self._coefficients[job])
        else:
            for job, row in rows.items():
                self._fix(row, level * self._coefficients[job])
        worth = self.rates * scale[:, None]
        if self.is_scaled:
            worth = worth / np.maximum(worth.max(axis=1, keepdims=True), 1e-300)
        return self._most(worth)

    def most(self, worth: Floats) -> Floats:
        """Return the shares that maximise the sum of worth [jobs, types] times share."""
        shares = self._most(worth)
        return equal_shares(self.rates, self.gangs, self.capacity) if shares is None else shares

    def _most(self, worth: Floats) -> Floats | None:
        self.objective.Clear()
        for own, values in zip(self.shares, worth.tolist(), strict=True):
            for share, value in zip(own, values, strict=True):
                self.objective.SetCoefficient(share, value)
        self.objective.SetMaximization()
        return self.values() if self._solve() else None

    def values(self) -> Floats:
        shares = [[share.solution_value() for share in own] for own in self.shares]
        return np.clip(np.array(shares, np.float64).reshape(self.rates.shape), 0.0, 1.0)

    def _solve(self) -> bool:
        for parameters in ("", DUAL_SIMPLEX) if self.is_scaled else ("",):
            self.solver.SetSolverSpecificParametersAsString(parameters)
            if self.solver.Solve() == pywraplp.Solver.OPTIMAL:
                self.last = self.values()
                return True
        return False

    def _level_rows(self, scale: Floats) -> dict[int, Any]:
        """Return a row per job that has a rate: scale times rate is at least the level."""
        rows: dict[int, Any] = {}
        most = (self.rates * scale[:, None]).max(axis=1)
        unit = float(most[most > 0].min(initial=np.inf))
        for job in np.flatnonzero(self.rates.max(axis=1) > 0).tolist():
            row = self.solver.Constraint(0.0, self.solver.infinity())
            part = float(most[job]) if self.is_scaled else 1.0
            for share, rate in zip(self.shares[job], self.rates[job].tolist(), strict=True):
                row.SetCoefficient(share, rate * float(scale[job]) / part)
            row.SetCoefficient(self.level, -unit / part if self.is_scaled else -1.0)
            self._coefficients[job] = unit / part if self.is_scaled else 1.0
            rows[job] = row
        return rows

    def _fix(self, row: Any, level: float) -> None:
        """Keep the job of the row at the level, at least."""
        row.SetCoefficient(self.level, 0.0)
        row.SetLb(level * (1.0 - (SLACK if self.is_scaled else BINDING)))

    def _at_most(self, limit: float, terms: Sequence[tuple[Any, float]]) -> None:
        row = self.solver.Constraint(-self.solver.infinity(), limit)
        for share, factor in terms:
            row.SetCoefficient(share, factor)


def equal_shares(rates: Floats, gangs: Floats, capacity: Floats) -> Floats:
    """Return the same share of each type for every job, as far as its GPUs and its time go."""
    part = capacity / max(float(gangs.sum()), 1e-300)
    part = part / max(1.0, float(part.sum()))
    shares: Floats = np.where(rates > 0, part[None, :], 0.0)
    return shares


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
