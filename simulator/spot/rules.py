"""Rules of a pool with spot jobs: order, places, victims and quota."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from services.admission.core.spot.quota import SpotQuotaSettings
from services.placement.core.spot.places import Scores, first_fit, packed
from simulator.spot.queue import (
    Order,
    by_submission,
    largest_first,
    largest_workers_first,
    smallest_first,
)

Quota = Literal["none", "static", "last_week", "forecast"]
"""`static`: one quantile of the history's demand; `last_week`: the peak of the last seven days."""


@dataclass(frozen=True, slots=True)
class SpotRules:
    """`least_cost`: victims by cost of all nodes, else those of the first node with room."""

    guaranteed_order: Order = by_submission
    spot_order: Order = by_submission
    blocks: bool = False
    scores: Scores = first_fit
    least_cost: bool = False
    quota: Quota = "none"
    feedback: bool = True
    settings: SpotQuotaSettings = field(default_factory=SpotQuotaSettings)


BLOCKING = SpotRules(blocks=True)
"""First fit in order of submission, without a quota, behind a job that fits nowhere: the published
baseline, save that it evicts for a job only where it fits nowhere else."""
PASSING = SpotRules()
"""The same, and jobs pass those that fit nowhere."""


def gfs(settings: SpotQuotaSettings, quota: Quota = "forecast", feedback: bool = True) -> SpotRules:
    """Return the published rules."""
    return SpotRules(
        largest_first,
        largest_workers_first,
        scores=packed,
        least_cost=True,
        quota=quota,
        feedback=feedback,
        settings=settings,
    )


def small_first(settings: SpotQuotaSettings) -> SpotRules:
    """Return the published rules with the smallest spot gangs first."""
    return SpotRules(
        largest_first,
        smallest_first,
        scores=packed,
        least_cost=True,
        quota="forecast",
        settings=settings,
    )
