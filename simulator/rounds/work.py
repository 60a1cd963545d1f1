"""The work of a job in the world: how far it gets in some seconds on an allocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from shared.performance.footprint import Footprint
from shared.performance.rates import RateTable
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.view import Estimates

ROUNDING = 1e-12
"""Part of the work that may be left at the end of a job for lack of precision."""


class Ran(NamedTuple):
    """Seconds in which the job worked, and whether its work has ended."""

    seconds: float
    has_ended: bool


class Work(Protocol):
    """A job's work, with its state."""

    def settle(self, footprint: Footprint) -> None:
        """Note that the job is on new GPUs, before it runs there."""
        ...

    def run(self, footprint: Footprint, seconds: float) -> Ran:
        """Work for so long, or to the end."""
        ...

    def left_s(self, footprint: Footprint) -> float | None:
        """Return the seconds to the end on the footprint; None where they are not known ahead."""
        ...

    def estimates(self) -> Estimates:
        """Return what a scheduler may know of the rest."""
        ...

    def most_gpus(self) -> int | None:
        """Return the most GPUs that the job can use now; None: as submitted."""
        ...


@runtime_checkable
class SavedWork(Protocol):
    """Work of which a stop keeps the last checkpoint."""

    def stop(self) -> None:
        """Lose what was done since the last checkpoint."""
        ...


@runtime_checkable
class HostSharingWork(Protocol):
    """Work whose speed depends on the cores and memory beside its GPUs."""

    def hold(self, share: PerGpu | None) -> None:
        """Note the share of each GPU until the next decision; None: nothing is shared."""
        ...


@dataclass(slots=True)
class StepWork:
    """Steps at measured rates. `whole_steps`: a round does whole steps and is shorter for it.

    The estimates are the truth, so they name an oracle.
    """

    total: float
    rates: RateTable
    whole_steps: bool = False
    done: float = 0.0

    def settle(self, footprint: Footprint) -> None:
        """Do nothing: steps are the same everywhere."""

    def run(self, footprint: Footprint, seconds: float) -> Ran:
        rate = self.rates.rate(footprint)
        if not rate:
            return Ran(seconds, False)
        left = self.total - self.done
        steps = rate * seconds
        if self.whole_steps:
            steps = float(int(steps))
        if steps >= left - ROUNDING * self.total:
            self.done = self.total
            return Ran(left / rate, True)
        self.done += steps
        return Ran(steps / rate if self.whole_steps else seconds, False)

    def left_s(self, footprint: Footprint) -> float | None:
        rate = self.rates.rate(footprint)
        return (self.total - self.done) / rate if rate else None

    def estimates(self) -> Estimates:
        return Estimates("oracle", self.total - self.done, self.rates)

    def most_gpus(self) -> int | None:
        return None
