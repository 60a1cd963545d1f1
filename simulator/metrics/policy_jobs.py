"""One side of a comparison: the jobs of one policy."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.metrics.outcome import Floats, Ints


@dataclass(frozen=True, slots=True)
class PolicyJobs:
    """Compared figures of one policy's jobs, in units of time: hours of a replay, or batches."""

    delay_s: Floats
    """JCT less the work: waiting, restarts and lost work."""
    jct_s: Floats
    slowdown: Floats
    unit: Ints
    """Unit of each job, in the order of time."""
    use: Floats
    """Utilisation of each unit; their mean is that of the whole."""
    productive: Floats
    """The same without lost work and restarts."""
