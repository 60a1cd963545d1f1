"""Long plain load: memory growth, errors in the logs and restarts of the services."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.result_file import ResultFile
from benchmarks.parts.chaos.slices import SETTLED, THIRD_PARTY
from benchmarks.parts.command import Json
from benchmarks.parts.stack import Bench

SAMPLE_S = 10.0
EMULATOR = "engine-"
"""Prefix of the logs of emulated engines, which are written for people."""
ERROR_LEVELS = frozenset({"error", "critical"})


@dataclass(slots=True)
class MemorySamples:
    """Proportional memory of each process of the stack, in MiB, over time."""

    at_s: list[float] = field(default_factory=list)
    mib: dict[str, list[float]] = field(default_factory=dict)

    def add(self, at_s: float, memory_mib: dict[str, float]) -> None:
        """Add a sample; a process that is missing from it keeps its last value."""
        for name, value in memory_mib.items():
            self.mib.setdefault(name, [value] * len(self.at_s))
        self.at_s.append(at_s)
        for name, values in self.mib.items():
            values.append(memory_mib[name] if name in memory_mib else values[-1])

    def growth_mib_per_h(self) -> dict[str, float]:
        """Return the slope of the least-squares line over the settled time, by process."""
        at = np.array(self.at_s)
        settled = at >= at[0] + SETTLED * (at[-1] - at[0])
        if settled.sum() < 2:
            return {}
        hours = at[settled] / 3600
        return {
            name: round(float(np.polyfit(hours, np.array(values)[settled], 1)[0]), 2)
            for name, values in self.mib.items()
        }


async def soak(options: ChaosOptions, loaded: LoadedStack, results: ResultFile) -> Json:
    """Inject no fault for `soak_minutes`: measure growth, errors and restarts."""

    def store(figures: Json) -> None:
        results.store_part("soak", {"per_s": options.per_s} | figures)
        loaded.progress = lambda: f", worst growth {figures['worst_growth_mib_per_h']} MiB/h"

    try:
        figures = await measure_growth(loaded.bench, options.soak_minutes, store)
        return {"per_s": options.per_s} | figures
    finally:
        loaded.progress = str


async def measure_growth(bench: Bench, minutes: float, store: Callable[[Json], None]) -> Json:
    """Sample memory for so long; `store` receives the figures after each sample."""
    data_dir = bench.stack.data_dir
    before, samples, began = await faults.pids(data_dir), MemorySamples(), time.monotonic()
    old_errors = Counter(await asyncio.to_thread(error_lines, data_dir))
    while True:
        now_s = time.monotonic() - began
        samples.add(now_s, await asyncio.to_thread(bench.pss_mib))
        store(figures := growth_figures(samples))
        if now_s >= minutes * 60:
            break
        await asyncio.sleep(min(SAMPLE_S, max(0.0, minutes * 60 - now_s)))
    after = await faults.pids(data_dir)
    errors = list((Counter(await asyncio.to_thread(error_lines, data_dir)) - old_errors).elements())
    return figures | {
        "restarted": sorted(name for name in before if after.get(name) != before[name]),
        "lines_of_errors": len(errors),
        "first_of_them": errors[:3],
    }


def growth_figures(samples: MemorySamples) -> Json:
    growth = samples.growth_mib_per_h()
    services = {name: value for name, value in growth.items() if name not in THIRD_PARTY}
    worst = max(services, key=services.__getitem__, default="")
    return {
        "minutes": round(samples.at_s[-1] / 60, 1),
        "worst_service": worst,
        "worst_growth_mib_per_h": services.get(worst),
        "growth_mib_per_h": growth,
        "mib_at_first": {name: values[0] for name, values in samples.mib.items()},
        "mib_at_last": {name: values[-1] for name, values in samples.mib.items()},
    }


def error_lines(data_dir: Path) -> list[str]:
    """Return the lines of the services' logs that are errors or not written by their loggers."""
    lines = []
    for path in sorted((data_dir / "logs").glob("*.log*")):
        name = path.name.partition(".")[0]
        if name in {*THIRD_PARTY, "supervisord"} or name.startswith(EMULATOR):
            continue
        for line in path.read_text(errors="replace").splitlines():
            if is_error(line):
                lines.append(f"{path.name}: {line[:300]}")
    return lines


def is_error(line: str) -> bool:
    """Return whether the line has an error level, or is not a JSON object at all."""
    try:
        return json.loads(line).get("level") in ERROR_LEVELS
    except (ValueError, AttributeError):
        return bool(line.strip())
