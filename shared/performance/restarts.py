"""Seconds without progress after a job has started, changed its size, or moved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartCosts:
    """Seconds of a restart: a constant part, and one per GPU of the gang."""

    constant_s: float
    per_gpu_s: float = 0.0

    def seconds(self, gpus: int) -> float:
        return self.constant_s + self.per_gpu_s * gpus


RESTART_S = 30.0
"""Time of a restart that the price of a change takes, in Pollux and in Sia."""

FREE = RestartCosts(0.0)
"""The simulations of Gavel (OSDI'20) take no time for a restart."""
POLLUX = RestartCosts(RESTART_S)
"""The simulations of Pollux (OSDI'21), for each job and size."""


def age_factor(age_s: float, restarts: int) -> float:
    """Return the part of its speed by which a job counts that restarts once more.

    The older a job and the fewer its restarts so far, the more (Pollux, OSDI'21, section 4.2).
    """
    return max(age_s - restarts * RESTART_S, 0.0) / (age_s + RESTART_S)
