"""Adapted schedules beside a stale zero-bubble one, by a link's delay, and beside exact ones."""

from __future__ import annotations

from collections.abc import Sequence

from shared.pipeline.model import Pipeline, checked
from shared.pipeline.schedules import adapted, plan
from simulator.pipeline.cases import random_pipeline
from simulator.pipeline.exact import shortest

FORWARD = 10.0
STAGES = 4
MICROBATCHES = 16
EXACT_SEEDS = range(2000, 2100)
"""Cases that were not used to choose the constants of the search."""
DELAYS = (1, 3, 6)
"""Extra delays of the slow link, in times of one forward operation."""


def pipeline_with(delay: float, stages: int = STAGES, microbatches: int = MICROBATCHES) -> Pipeline:
    """Return a balanced pipeline, of which the last hop is slow."""
    delays = (0.0,) * (stages - 2) + (delay * FORWARD,)
    return checked(stages, microbatches, [FORWARD], [FORWARD], [FORWARD], delays)


def speed_up(pipeline: Pipeline) -> float:
    """Return how much longer the zero-bubble schedule takes that was planned without the delay."""
    stale, own = plan(pipeline, "zb_h2"), plan(pipeline, "adapted")
    return stale.timeline.makespan / own.timeline.makespan


def figures() -> dict[str, float]:
    """Return the speed-up for each delay."""
    return {str(delay): round(speed_up(pipeline_with(delay)), 3) for delay in DELAYS}


def gap_figures(seeds: Sequence[int] = EXACT_SEEDS) -> dict[str, float]:
    """Return how far adapted schedules are from the exact solver's bound, in mean and at worst."""
    measured = gaps(seeds)
    return {
        "cases": len(measured),
        "mean": round(sum(measured) / len(measured), 4),
        "worst": round(max(measured), 4),
    }


def gaps(seeds: Sequence[int] = EXACT_SEEDS) -> list[float]:
    """Return how much longer each adapted schedule is than what is proven to be the least."""
    return [_gap(seed) for seed in seeds]


def _gap(seed: int) -> float:
    pipeline = random_pipeline(seed)
    own = adapted(pipeline)
    return own.timeline.makespan / shortest(pipeline, own.orders).bound - 1
