"""Stages of the starts on the node of a real agent, by the files that agent and step write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.parts.agents.figures import quantiles
from benchmarks.parts.command import Json
from berth_agent import file_names

LOOK_S = 0.1
NS_PER_MS = 1_000_000
FILES = {
    "noted": file_names.ORDER,
    "specified": file_names.SPEC,
    "stepped": file_names.STEP_LOG,
    "gone": file_names.GO,
}
STAGES = (
    ("order", "placed", "noted"),
    ("world", "noted", "specified"),
    ("step", "specified", "stepped"),
    ("barrier", "stepped", "gone"),
    ("program", "gone", "ran"),
    ("step_to_program", "stepped", "ran"),
)
"""Name of a stage, and the marks between which it lies."""


@dataclass(slots=True)
class StageWatch:
    """Wall ms of each mark by job; programs of the jobs have to live for some looks."""

    allocations: Path
    marks: dict[str, dict[str, float]] = field(default_factory=dict)

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            self._look()
            await asyncio.sleep(LOOK_S)

    def _look(self) -> None:
        for folder in self.allocations.iterdir() if self.allocations.exists() else ():
            # An allocation that ends is moved away at any moment.
            with suppress(OSError, ValueError):
                order = json.loads((folder / file_names.ORDER).read_text())
                marks = self.marks.setdefault(order["order"]["launch"]["job_id"], {})
                for mark, name in FILES.items():
                    path = folder / name
                    if mark not in marks and path.exists():
                        marks[mark] = path.stat().st_mtime_ns / NS_PER_MS


def describe_stages(
    marks: Mapping[str, Mapping[str, float]],
    placed_ms: Mapping[str, int],
    ran_ms: Mapping[str, int],
) -> Json:
    """Return p50 and p99 of each stage; None for one that these starts do not have."""
    starts = [
        {**seen, "placed": float(placed_ms[job]), "ran": float(ran_ms[job])}
        for job, seen in marks.items()
        if job in placed_ms and job in ran_ms
    ]
    figures: Json = {}
    for name, begin, end in STAGES:
        times = [start[end] - start[begin] for start in starts if begin in start and end in start]
        figures |= quantiles(name, times)
    return figures
