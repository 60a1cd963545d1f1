"""The cost of a stop of each job of a run, in whole ms."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from services.placement.core.round.progress import CHECKPOINT_PART
from simulator.kernel.state import Bools, Floats, Ints
from simulator.kernel.work import Work
from simulator.workload.stop_costs import checkpoint_intervals_s, restarts_s


class CostRules(Protocol):
    """The settings of `run.Rules` that decide what stops cost."""

    @property
    def checkpoint_s(self) -> float: ...

    @property
    def checkpoint_spread(self) -> float: ...

    @property
    def checkpoint_cost_s(self) -> float: ...

    @property
    def checkpoint_window_s(self) -> float: ...

    @property
    def restart_s(self) -> float: ...

    @property
    def restart_growth(self) -> float: ...


class JobCosts(NamedTuple):
    """The fields of `JobRow` of the same names, [jobs] each."""

    checkpoint_ms: Ints
    window_ms: Ints
    restart_ms: Ints

    def part(self, chosen: Bools) -> JobCosts:
        return JobCosts(*(column[chosen] for column in self))


def job_costs(work: Work, rules: CostRules) -> JobCosts:
    """Return the costs of all jobs: what the trace says of them, and the rules of the others."""
    checkpoint_s = checkpoint_intervals_s(
        work.checkpoint_s, rules.checkpoint_s, rules.checkpoint_spread
    )
    checkpoint_ms = whole_ms(checkpoint_s)
    restart_s = restarts_s(work.gang.astype(np.float64), rules.restart_s, rules.restart_growth)
    return JobCosts(checkpoint_ms, windows_ms(checkpoint_ms, rules), whole_ms(restart_s))


def windows_ms(checkpoint_ms: Ints, rules: CostRules) -> Ints:
    """Return `progress.stop_window_ms` of each job: all of its time, where a stop writes one."""
    if rules.checkpoint_cost_s > 0.0:
        return checkpoint_ms
    least_ms = round(rules.checkpoint_window_s * 1000)
    return np.maximum(least_ms, checkpoint_ms // CHECKPOINT_PART)


def whole_ms(seconds: Floats) -> Ints:
    return np.rint(seconds * 1000.0).astype(np.int64)
