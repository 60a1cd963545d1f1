"""Figures of the mitigation of slowdowns and of pipeline schedules."""

from __future__ import annotations

from simulator.pipeline import figures as pipeline_figures

Figures = dict[str, float] | None


def mitigated() -> Figures:
    """Return the shares of slowdown that mitigation removes."""
    return None


def pipeline() -> Figures:
    """Return the speed-up of adapted schedules by the delay of a link."""
    return dict(pipeline_figures())
