"""Inputs of the released artifacts of publications: `anchors/NAME` beside the folder of traces."""

from __future__ import annotations

from pathlib import Path

from simulator.workload.locate import has_trace, traces_folder
from simulator.workload.locate import locate as locate_trace


def artifact_folder(artifact: str) -> Path | None:
    """Return the folder of an artifact; None where it is not on this machine."""
    traces = traces_folder()
    if traces is None or not (traces.parent / "anchors" / artifact).is_dir():
        return None
    return traces.parent / "anchors" / artifact


def trace_file(name: str) -> Path | None:
    """Return the file of a shared trace; None where it is not on this machine."""
    return locate_trace(name) if has_trace(name) else None
