"""Run times that a policy uses, and their source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.priority.core.history.distributions import Floats
from services.priority.core.policies import expected
from services.priority.core.queue.queue_view import QueueView
from shared.contracts.pools import RuntimeSource

LEAST_S = 0.001
"""Rest of a job that outlived its run time."""


@dataclass(slots=True)
class RunTimes:
    """Run times by a source; where it has nothing it falls back: oracle, user, history.

    History always has an answer: before any job ended it is its prior, the same for all jobs.
    """

    view: QueueView
    source: RuntimeSource
    used: bool = field(default=False)
    """Whether a policy used them."""

    def run_s(self) -> Floats:
        """Return the run time of each whole job, [n], cluster s."""
        self.used = True
        run_s = self._from_source()
        return np.where(np.isnan(run_s), self.view.mean_s, run_s)

    def left_s(self) -> Floats:
        """Return the rest, [n]: run time minus attained, or what history expects after as long.

        What a running job reports of its rest goes before both, except before the oracle's.
        """
        self.used = True
        if self.source == "history":
            return expected.believed_left_s(self.view)
        run_s = self._from_source()
        rest_s = np.maximum(LEAST_S, run_s - self.view.attained_s)
        by_source_s = np.where(np.isnan(run_s), expected.left_s(self.view), rest_s)
        if self.source == "oracle":
            return by_source_s
        return expected.unless_reported(self.view, by_source_s)

    def terms(self) -> dict[str, float]:
        """Count the jobs by the source of their run time; `runtime.prior`: without history."""
        if not self.used:
            return {}
        has_samples = self.view.samples > 0
        if self.source == "history":
            return count_by_source({"history": has_samples, "prior": ~has_samples})
        oracle = np.zeros(len(self.view.rows), np.bool_)
        if self.source == "oracle":
            oracle = ~np.isnan(self.view.duration_s)
        user = ~oracle & ~np.isnan(self.view.walltime_s)
        rest = ~(oracle | user)
        known, prior = rest & has_samples, rest & ~has_samples
        return count_by_source({"oracle": oracle, "user": user, "history": known, "prior": prior})

    def _from_source(self) -> Floats:
        """Return run times by the source alone, nan where it has none."""
        view = self.view
        match self.source:
            case "oracle":
                return np.where(np.isnan(view.duration_s), view.walltime_s, view.duration_s)
            case "user":
                return view.walltime_s
            case "history":
                return np.full(len(view.rows), np.nan)


def count_by_source(jobs: Mapping[str, NDArray[np.bool_]]) -> dict[str, float]:
    """Return the number of jobs of each source that has any."""
    counts = {f"runtime.{name}": float(np.count_nonzero(mask)) for name, mask in jobs.items()}
    return {name: count for name, count in counts.items() if count}
