"""Flags of `berth bench policies`."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.rules import FAMILY


@dataclass(frozen=True, slots=True)
class PoliciesOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    trace: str = ""
    quick: bool = False
    model: str = FAMILY
    checkpoint_s: float = 60.0
    restart_s: float = 60.0
    fixed_share: float = 0.0
    out: str = ""

    @property
    def costs(self) -> StopCosts:
        return StopCosts(self.checkpoint_s, self.restart_s, self.fixed_share)
