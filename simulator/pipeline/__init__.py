"""Measures the schedules of `shared/pipeline`."""

from simulator.pipeline.study import figures

__all__ = ["figures"]
