"""Measures the schedules of `shared/pipeline`."""

from simulator.pipeline.study import figures, gap_figures

__all__ = ["figures", "gap_figures"]
