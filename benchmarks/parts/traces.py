"""The traces that a benchmark replays."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.workload.locate import has_trace


def chosen_traces(trace: str, shared: Sequence[str], synthetic: Sequence[str]) -> tuple[str, ...]:
    """Return the named trace; without a name the shared ones that are there, or synthetic ones."""
    if trace:
        return (trace,)
    return tuple(name for name in shared if has_trace(name)) or tuple(synthetic)
