"""Trainings whose steps take as long as the links of their gangs allow."""

from __future__ import annotations

from dataclasses import dataclass

from shared.performance.footprint import Footprint
from shared.performance.links import GangSteps, Link, LinkTier
from shared.schedulers.view import Estimates
from simulator.rounds.work import Ran


@dataclass(slots=True)
class LinkedWork:
    """So many steps of a gang. Over the spine a step depends on the jobs that share it.

    What schedulers know is the truth of a gang alone on its links, so it names an oracle.
    """

    total: float
    steps: GangSteps
    done: float = 0.0
    spine_bytes_per_s: float | None = None
    """Share of the ring in the uplinks of its racks at present; None: as if alone."""
    communicating_s: float = 0.0
    """Seconds of steps beyond their computation, so far."""

    def settle(self, footprint: Footprint) -> None:
        """Do nothing: steps are the same everywhere."""

    def step_s(self, footprint: Footprint) -> float | None:
        """Return the seconds of a step on the allocation; None where a link is unknown."""
        tier = footprint.tier
        if tier is None:
            return None
        link = self.steps.links.of(tier)
        if tier is LinkTier.SPINE and link is not None and self.spine_bytes_per_s is not None:
            shared = Link(link.latency_s, min(link.bytes_per_s, self.spine_bytes_per_s))
            return self.steps.step_with(self.steps.sync_s(footprint.gpus, shared))
        return self.steps.step_s(footprint.gpus, tier)

    def run(self, footprint: Footprint, seconds: float) -> Ran:
        step_s = self.step_s(footprint)
        if step_s is None:
            return Ran(seconds, False)
        needed_s = (self.total - self.done) * step_s
        ran_s = min(seconds, needed_s)
        self.done += ran_s / step_s
        self.communicating_s += ran_s * (1.0 - self.steps.compute_s / step_s)
        return Ran(ran_s, needed_s <= seconds)

    def left_s(self, footprint: Footprint) -> float | None:
        step_s = self.step_s(footprint)
        return None if step_s is None else (self.total - self.done) * step_s

    def estimates(self) -> Estimates:
        return Estimates("oracle", self.total - self.done, steps=self.steps)

    def most_gpus(self) -> int | None:
        return None
