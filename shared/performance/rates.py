"""Measured rates of a job by type and number of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.performance.footprint import Footprint


@dataclass(frozen=True, slots=True)
class RateTable:
    """Units of work per second by (GPU type, GPUs), beside each other and spread over nodes.

    A rate of 0 was measured: the job does not run there, for example for lack of memory.
    """

    consolidated: Mapping[tuple[str, int], float]
    spread: Mapping[tuple[str, int], float] = field(default_factory=dict)

    def rate(self, footprint: Footprint) -> float | None:
        """Return the units per second on the footprint; None where nothing was measured.

        Workers of a gang wait for each other, so that one of several types is as fast as it would
        be on the slowest of them.
        """
        table = self.consolidated if footprint.is_consolidated else self.spread
        return slowest_rate(table, footprint)

    def consolidated_rate(self, gpu_type: str, gpus: int) -> float | None:
        """Return the rate of so many GPUs of a type beside each other."""
        return interpolated_rate(self.consolidated, gpu_type, gpus)


def slowest_rate(table: Mapping[tuple[str, int], float], footprint: Footprint) -> float | None:
    """Return the least rate over the types of a footprint; None if one of them was not measured."""
    rate = interpolated_rate(table, footprint.gpu_type, footprint.gpus)
    for name in footprint.other_types:
        other = interpolated_rate(table, name, footprint.gpus)
        rate = None if rate is None or other is None else min(rate, other)
    return rate


def interpolated_rate(
    table: Mapping[tuple[str, int], float], gpu_type: str, gpus: int
) -> float | None:
    """Return the measured rate, or the linear one between two measured numbers of GPUs.

    Nothing is extrapolated. No GPUs do no work.
    """
    if gpus == 0:
        return 0.0
    exact = table.get((gpu_type, gpus))
    if exact is not None:
        return exact
    numbers = sorted(number for name, number in table if name == gpu_type)
    below = max((number for number in numbers if number < gpus), default=None)
    above = min((number for number in numbers if number > gpus), default=None)
    if below is None or above is None:
        return None
    low, high = table[gpu_type, below], table[gpu_type, above]
    return low + (high - low) * (gpus - below) / (above - below)
