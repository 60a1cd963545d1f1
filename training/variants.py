"""The networks shipped with Berth: one for each way in which a pool may be run."""

from __future__ import annotations

from dataclasses import dataclass

from shared.contracts.pools import LOG_SCORE_MARGIN
from simulator.kernel.run import Rules
from simulator.kernel.weights import Floats

BASES = ("fcfs", "multifactor", "smallest_first", "sjf", "f1", "wfp3", "unicep")
"""Base policies re-ranked in training, one per window in turn; run times are never the true
ones.
"""


@dataclass(frozen=True, slots=True)
class Variant:
    """A network's use: with or without preemption by rank, with or without the tenants' history.

    `band`: score within which the base decides. Without history run times are bounded by
    declared walltimes at most, which the traces of the training do not have. No job migrates for
    a larger one here: the networks learn order, which matters more the less the nodes' shape
    decides.
    """

    name: str
    preemption: bool
    history: bool
    band: float

    def rules(self, theta: Floats, base: str = "fcfs") -> Rules:
        return Rules(
            "learned",
            base=base,
            band=self.band,
            preemption=self.preemption,
            runtime="history" if self.history else "none",
            preempt_margin=LOG_SCORE_MARGIN,
            large_at_start=0.0,
            theta=theta,
            defragment_after_s=None,
        )


FIRST = Variant("first", preemption=True, history=True, band=0.0)
"""Start of every other variant: trained for longer, without a base."""
SHIPPED = (
    Variant("berth-preempt", preemption=True, history=True, band=0.0),
    Variant("berth-queue", preemption=False, history=True, band=1.0),
    Variant("berth-preempt-blind", preemption=True, history=False, band=0.5),
    Variant("berth-queue-blind", preemption=False, history=False, band=1.0),
)
VARIANTS = {variant.name: variant for variant in (FIRST, *SHIPPED)}
