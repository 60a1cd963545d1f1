"""Figures of the mitigation of slowdowns and of pipeline schedules."""

from __future__ import annotations

from simulator.failslow.mitigation import figures as mitigation_figures
from simulator.failslow.mitigation import rows
from simulator.failslow.room import room_rows
from simulator.pipeline import figures as pipeline_figures
from simulator.pipeline import gap_figures
from simulator.pipeline.study import EXACT_SEEDS

Figures = dict[str, float]


def mitigated() -> Figures:
    """Return the shares of the lost time that mitigation removes, and that an optimum would."""
    return dict(mitigation_figures())


def policies() -> dict[str, Figures]:
    """Return the share of the lost time that each policy removes, by policy."""
    return rows()


def room() -> list[Figures]:
    """Return what ways to find room in a full pool remove, by the pool."""
    return room_rows()


def pipeline() -> Figures:
    """Return the speed-up of adapted schedules by the delay of a link."""
    return dict(pipeline_figures())


def pipeline_gap(seeds: int) -> Figures:
    """Return the gaps to an exact solver of the first cases that were not used for tuning."""
    return gap_figures(EXACT_SEEDS[:seeds])
