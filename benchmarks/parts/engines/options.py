"""Flags of `berth bench engines`."""

from __future__ import annotations

from dataclasses import dataclass

ENGINES = ("virtual", "agent", "slurm", "kubernetes", "ray")
"""Backends of a pool, in the order of the page."""


@dataclass(frozen=True, slots=True)
class EnginesOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    only: str = ""
    """One engine: the figures of the others stay as in `out`; empty: all."""
    starts: int = 30
    """Gangs that are submitted one after the other."""
    gangs: int = 60
    """Gangs that are submitted at once."""
    kills: int = 5
    """Times that the executor is killed, at random points of the work of `gangs` more."""
    seed: int = 1
    out: str = ""
    """Folder of engines.json and engines.md."""


def check_options(options: EnginesOptions) -> None:
    """Raise ValueError for an unknown engine, or a run without work."""
    if options.only not in ("", *ENGINES):
        raise ValueError(f"only={options.only}: must be one of {ENGINES}, or empty for all")
    for name in ("starts", "gangs", "kills"):
        if getattr(options, name) < 1:
            raise ValueError(f"{name}: {getattr(options, name)}; 1 or more is allowed")
