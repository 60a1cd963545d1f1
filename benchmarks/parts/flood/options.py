"""Flags of `berth bench flood`."""

from __future__ import annotations

from dataclasses import dataclass

from infra.supervisor.running import Broker


@dataclass(frozen=True, slots=True)
class FloodOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    broker: Broker = "embedded"
    malformed: int = 1_000_000
    jobs: int = 200
    """Jobs of the other tenant behind the flood, besides those while it is published."""
    alone: int = 20
    """Jobs of the other tenant before the flood."""
    every_s: float = 0.25
    seed: int = 1
    out: str = ""
    """Folder of flood.json and flood.md."""


def check_options(options: FloodOptions) -> None:
    """Raise ValueError for a run without work."""
    for name, least in (("malformed", 1), ("jobs", 1), ("alone", 1)):
        if getattr(options, name) < least:
            raise ValueError(f"{name}: {getattr(options, name)}; {least} or more is allowed")
