"""Flags of `berth bench placement`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlacementBenchOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    instances: int = 200
    jobs: int = 4000
    nodes: int = 17
    load: float = 1.1
    jct_jobs: int = 1500
    quick: bool = False
