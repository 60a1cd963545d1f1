"""Which run time a policy believes, and who said it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from services.priority.core import expected
from services.priority.core.queue_view import QueueView
from services.priority.core.table import Floats
from shared.contracts.access import RuntimeSource

LEAST_S = 0.001
"""Rest of a job that ran longer than was said."""


@dataclass(slots=True)
class RunTimes:
    """Run times by a source; where it has nothing it falls back: oracle, user, history.

    History always has an answer: before any job ended it is its prior, the same for all jobs.
    """

    view: QueueView
    source: RuntimeSource
    asked: bool = field(default=False)
    """Did a policy use them?"""

    def run_s(self) -> Floats:
        """Of a whole job, [n], cluster s."""
        self.asked = True
        said = self._said()
        return np.where(np.isnan(said), self.view.mean_s, said)

    def left_s(self) -> Floats:
        """Of its rest, [n]: said minus attained, or as history expects of who lasted so long."""
        self.asked = True
        said = self._said()
        if self.source == "history":
            return expected.left_s(self.view)
        rest = np.maximum(LEAST_S, said - self.view.attained_s)
        return np.where(np.isnan(said), expected.left_s(self.view), rest)

    def terms(self) -> dict[str, float]:
        """Jobs by who said their run time; `runtime.prior`: history knew of none like it."""
        if not self.asked:
            return {}
        oracle = np.zeros(len(self.view.rows), np.bool_)
        user = oracle
        if self.source == "oracle":
            oracle = ~np.isnan(self.view.duration_s)
        if self.source != "history":
            user = ~oracle & ~np.isnan(self.view.walltime_s)
        rest = ~(oracle | user)
        known = rest & (self.view.samples > 0)
        counts = {"oracle": oracle, "user": user, "history": known, "prior": rest & ~known}
        return {f"runtime.{n}": float(c.sum()) for n, c in counts.items() if c.any()}

    def _said(self) -> Floats:
        """nan where nobody said anything."""
        view = self.view
        match self.source:
            case "oracle":
                return np.where(np.isnan(view.duration_s), view.walltime_s, view.duration_s)
            case "user":
                return view.walltime_s
            case "history":
                return np.full(len(view.rows), np.nan)
