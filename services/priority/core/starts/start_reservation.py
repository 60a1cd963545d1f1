"""The reservation of the first simulated job that does not fit, as EASY backfilling makes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NEVER_S = float("inf")


@dataclass(slots=True)
class Reservation:
    """The start of the first job that does not fit, and GPUs that it leaves free then."""

    start_s: float
    spare_gpus: float

    def admits(self, end_s: float, gpus: float) -> bool:
        """Return whether a job does not delay the start."""
        return end_s <= self.start_s or gpus <= self.spare_gpus

    def take(self, end_s: float, gpus: float) -> None:
        """Take the spare GPUs of a job that started and ends later."""
        if end_s > self.start_s:
            self.spare_gpus -= gpus


def reserve(gpus: float, free_gpus: float, ends: Iterable[tuple[float, float]]) -> Reservation:
    """Return when so many GPUs are free, as jobs end in this order; never if they are too few."""
    for end_s, released in ends:
        free_gpus += released
        if free_gpus >= gpus:
            return Reservation(end_s, free_gpus - gpus)
    return Reservation(NEVER_S, 0.0)
