"""Work at a known rate of which a stop keeps checkpoints, predicted by the history of run times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from services.priority.core.history.distributions import VALUES, bin_of, bin_start_s
from shared.performance.rates import RateTable
from shared.schedulers.view import Estimates
from simulator.metrics.outcome import Floats
from simulator.rounds.work import StepWork

HISTORY = "history"


@dataclass(slots=True)
class CheckpointedWork(StepWork):
    """A second of work is a second on the requested GPUs.

    `rests_s` is the expected rest by the bin of what was done, see `rests_by_bin`; without it the
    rest is unknown to schedulers.
    """

    checkpoint_s: float = 0.0
    """Work between two checkpoints of an attempt; 0: none are made."""
    rests_s: Sequence[float] = ()
    attempt_from: float = field(default=0.0, init=False)

    def stop(self) -> None:
        """Keep what the attempt did up to its last checkpoint."""
        worked = self.done - self.attempt_from
        saved = worked // self.checkpoint_s * self.checkpoint_s if self.checkpoint_s > 0 else 0.0
        self.done = self.attempt_from = self.attempt_from + saved

    def estimates(self) -> Estimates:
        if not self.rests_s:
            return Estimates(HISTORY, None, self.rates)
        return Estimates(HISTORY, self.rests_s[bin_of(self.done)], self.rates)


def alone_on(gpu_type: str, gpus: int) -> RateTable:
    """Return the rates of a gang that does a second of its work in a second on any nodes."""
    rates = {(gpu_type, gpus): 1.0}
    return RateTable(rates, rates)


def rests_by_bin(distributions: Floats) -> Floats:
    """Return the expected rest [jobs, BINS], s, of jobs of these distributions by what they did.

    It is that of `distributions.mean_left_s`, for all bins at once.
    """
    mass = np.cumsum(distributions[:, ::-1], axis=1)[:, ::-1]
    spent = np.cumsum((distributions * VALUES)[:, ::-1], axis=1)[:, ::-1]
    begun = np.array([bin_start_s(b) for b in range(distributions.shape[1])])
    mean = np.divide(spent, mass, out=np.zeros_like(spent), where=mass > 0.0)
    rests: Floats = np.where(mass > 0.0, mean - begun, begun + 1.0)
    return rests
