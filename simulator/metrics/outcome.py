"""Outcome of the jobs of one simulation, of either engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

HOUR_S = 3600.0
BOUND_S = 10.0
"""Runs shorter than this count as this long in the bounded slowdown (Feitelson 2001)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOutcome:
    """Times and GPUs of all jobs; row i of every array is the same job, in cluster seconds of
    one clock.

    NaN did not happen before `horizon_s`, where the simulation ended. Jobs are never left out:
    one that could not fit into the pool at all has `fits` False, NaN times and no GPUs.
    """

    submit_s: Floats
    start_s: Floats
    """First allocation of its GPUs."""
    end_s: Floats
    duration_s: Floats
    """Work of the job: its time on GPUs if it is never stopped."""
    gpus: Floats
    tenant: Ints
    starts: Ints
    """Attempts on GPUs."""
    held_s: Floats
    """Time on GPUs over all attempts, lost work and restarts included."""
    lost_s: Floats
    """Part of `held_s` that was lost: work after a checkpoint, and restarts."""
    fits: Bools
    capacity_gpus: float
    window_s: tuple[float, float]
    """Evaluation window: jobs submitted in [from, to), GPUs held between them."""
    held_by_hour: Floats
    """GPU-seconds held in each hour of the window, from its begin."""
    horizon_s: float
    fragmentation: float = float("nan")
    """Time-weighted share of the free GPUs of the window that lay on partly used nodes."""
    lost_by_hour: Floats | None = None
    """GPU-seconds of the attempts that ended in each hour which kept no work; None: not known."""

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def busy_gpu_s(self) -> float:
        """GPU-seconds held within the window."""
        return float(self.held_by_hour.sum())

    @property
    def ended(self) -> Bools:
        return ~np.isnan(self.end_s)

    @property
    def in_window(self) -> Bools:
        low, high = self.window_s
        return (self.submit_s >= low) & (self.submit_s < high)

    @property
    def jct_s(self) -> Floats:
        """Submit to end; of a job that has not ended the time until now, a lower bound."""
        return np.where(self.ended, self.end_s, self.horizon_s) - self.submit_s

    @property
    def wait_s(self) -> Floats:
        """Submit to the first start; of a job that never started a lower bound."""
        return np.where(np.isnan(self.start_s), self.horizon_s, self.start_s) - self.submit_s

    @property
    def queued_s(self) -> Floats:
        """All time without GPUs between submit and end, that after a preemption included."""
        return np.maximum(self.jct_s - self.held_s, 0.0)

    @property
    def slowdown(self) -> Floats:
        """Bounded slowdown: JCT over the work, both at least `BOUND_S`, so never below 1."""
        return np.maximum(self.jct_s / np.maximum(self.duration_s, BOUND_S), 1.0)
