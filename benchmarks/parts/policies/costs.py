"""The cost of stopping a job, under which policies are compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from simulator.kernel.run import Rules


@dataclass(frozen=True, slots=True)
class StopCosts:
    """Seconds between checkpoints, seconds of a restart, and share of jobs that are not stopped.

    The defaults are what published comparisons assume; half-hourly checkpoints are common.
    """

    checkpoint_s: float = 60.0
    restart_s: float = 60.0
    fixed_share: float = 0.0

    def __post_init__(self) -> None:
        if self.checkpoint_s <= 0.0:
            raise ValueError(f"checkpoint_s: {self.checkpoint_s}, must be above 0")
        if self.restart_s < 0.0:
            raise ValueError(f"restart_s: {self.restart_s}, must be at least 0")
        if not 0.0 <= self.fixed_share <= 1.0:
            raise ValueError(f"fixed_share: {self.fixed_share}, must be 0 to 1")

    def applied(self, rules: Rules) -> Rules:
        """Return the rules at these costs.

        Rules of papers protect a start for a fixed time. It is a checkpoint and a restart at least
        here: with less a job that is stopped again and again keeps nothing and never ends.
        """
        at_costs = replace(rules, **asdict(self))
        if rules.preemption_protection == "progress":
            return at_costs
        least_s = max(rules.min_residency_s, self.checkpoint_s + self.restart_s)
        return replace(at_costs, min_residency_s=least_s)
