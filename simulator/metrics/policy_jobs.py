"""One side of a comparison: the jobs of one policy."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.metrics.outcome import Floats, Ints


@dataclass(frozen=True, slots=True)
class PolicyJobs:
    """Compared figures of one policy's jobs; jobs of one `block` share a queue."""

    delay_s: Floats
    """JCT less the work: waiting, restarts and lost work."""
    jct_s: Floats
    slowdown: Floats
    block: Ints
    use: Floats
    """Utilisation of each batch, or of the one replay."""
