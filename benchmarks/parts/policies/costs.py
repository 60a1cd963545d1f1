"""The cost of stopping a job, under which policies are compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from simulator.kernel.run import Rules
from simulator.workload.stop_costs import LONGEST_S


@dataclass(frozen=True, slots=True)
class StopCosts:
    """Seconds between checkpoints, seconds of a restart, and share of jobs that are not stopped.

    The defaults are what published comparisons assume; half-hourly checkpoints are common. With a
    spread each job draws its interval, and with growth a larger gang restarts more slowly; see
    `simulator/workload/stop_costs.py`.
    """

    checkpoint_s: float = 60.0
    restart_s: float = 60.0
    fixed_share: float = 0.0
    checkpoint_spread: float = 0.0
    restart_growth: float = 0.0

    def __post_init__(self) -> None:
        if self.checkpoint_s <= 0.0:
            raise ValueError(f"checkpoint_s: {self.checkpoint_s}, must be above 0")
        if self.restart_s < 0.0:
            raise ValueError(f"restart_s: {self.restart_s}, must be at least 0")
        if not 0.0 <= self.fixed_share <= 1.0:
            raise ValueError(f"fixed_share: {self.fixed_share}, must be 0 to 1")
        for name in ("checkpoint_spread", "restart_growth"):
            if getattr(self, name) < 0.0:
                raise ValueError(f"{name}: {getattr(self, name)}, must be at least 0")

    @property
    def label(self) -> str:
        return label_of(self.checkpoint_s, self.restart_s, self.checkpoint_spread)

    def applied(self, rules: Rules) -> Rules:
        """Return the rules at these costs.

        Rules of papers protect a start for a fixed time. It is a checkpoint and a restart at least
        here: with less a job that is stopped again and again keeps nothing and never ends.
        """
        at_costs = replace(rules, **asdict(self))
        if rules.preemption_protection == "progress":
            return at_costs
        longest_s = LONGEST_S if self.checkpoint_spread else self.checkpoint_s
        least_s = max(rules.min_residency_s, longest_s + self.restart_s)
        return replace(at_costs, min_residency_s=least_s)


def label_of(checkpoint_s: float, restart_s: float, checkpoint_spread: float) -> str:
    """Return the costs as a head of a column: the medians, and whether each job has its own."""
    return f"{checkpoint_s:g}/{restart_s:g}" + (" drawn" if checkpoint_spread else "")
