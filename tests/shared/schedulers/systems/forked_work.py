"""Trainings that run as copies of their gang, as HadarE has them (arXiv 2503.10918).

Each copy trains on a node of its own, on whatever type it has. In a round the steps are divided in
proportion to the copies' rates, so that all end together, and then their weights are averaged: that
is local SGD, another training than the one that was submitted, and what it takes is `merge_s`.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.performance.footprint import Footprint
from shared.performance.rates import RateTable
from shared.schedulers.view import Estimates
from simulator.rounds.work import ROUNDING, Ran


@dataclass(slots=True)
class ForkedWork:
    """So many steps of a gang of `gang` GPUs; a node with less than a gang has no copy."""

    total: float
    rates: RateTable
    gang: int
    merge_s: float = 0.0
    """Seconds at the end of each run of several copies in which their weights are averaged."""
    done: float = 0.0

    def settle(self, footprint: Footprint) -> None:
        """Do nothing: steps are the same everywhere."""

    def rate(self, footprint: Footprint) -> float:
        """Return the steps per second of all copies."""
        return sum(
            copies * (self.rates.consolidated_rate(gpu_type, self.gang) or 0.0)
            for gpu_type, copies in self._copies(footprint)
        )

    def run(self, footprint: Footprint, seconds: float) -> Ran:
        rate = self.rate(footprint)
        if not rate:
            return Ran(seconds, False)
        several = sum(copies for _, copies in self._copies(footprint)) > 1
        merge_s = min(seconds, self.merge_s) if several else 0.0
        left = self.total - self.done
        steps = rate * (seconds - merge_s)
        if steps >= left - ROUNDING * self.total:
            self.done = self.total
            return Ran(left / rate + merge_s, True)
        self.done += steps
        return Ran(seconds, False)

    def left_s(self, footprint: Footprint) -> float | None:
        rate = self.rate(footprint)
        return (self.total - self.done) / rate if rate else None

    def estimates(self) -> Estimates:
        return Estimates("oracle", self.total - self.done, self.rates)

    def most_gpus(self) -> int | None:
        return None

    def _copies(self, footprint: Footprint) -> list[tuple[str, int]]:
        """Return the type and the number of copies of each node."""
        pairs = zip(footprint.type_of_nodes, footprint.per_node, strict=True)
        return [(gpu_type, gpus // self.gang) for gpu_type, gpus in pairs]
