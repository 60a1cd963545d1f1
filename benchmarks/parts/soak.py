"""A long while of plain load: does anybody's memory grow, and does anybody complain or end?"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.parts import faults
from benchmarks.parts.stack import Bench

Json = dict[str, object]

SAMPLE_S = 10.0
SETTLED = 0.5
"""Caches fill in this first part of the time; growth is told of the rest."""
PARTS = frozenset({"broker", "postgres"})
"""Programs of others, whose caches have bounds of their own."""
BAD = frozenset({"error", "critical"})


@dataclass(slots=True)
class Soak:
    """Samples of proportional memory, in MiB, of each process of the stack."""

    at_s: list[float] = field(default_factory=list)
    mib: dict[str, list[float]] = field(default_factory=dict)

    def add(self, at_s: float, found: dict[str, float]) -> None:
        """A process that is away just now has what it had."""
        for name, value in found.items():
            self.mib.setdefault(name, [value] * len(self.at_s))
        self.at_s.append(at_s)
        for name, values in self.mib.items():
            values.append(found[name] if name in found else values[-1])

    def growth_mib_per_h(self) -> dict[str, float]:
        """Slope of the line of least squares, by process, since all had settled."""
        at = np.array(self.at_s)
        late = at >= at[0] + SETTLED * (at[-1] - at[0])
        if late.sum() < 2:
            return {}
        hours = at[late] / 3600
        return {
            name: round(float(np.polyfit(hours, np.array(values)[late], 1)[0]), 2)
            for name, values in self.mib.items()
        }


async def soak(bench: Bench, minutes: float, note: Callable[[Json], None]) -> Json:
    """`note` is told what is known, now and then."""
    data_dir = bench.stack.data_dir
    before, samples, began = await faults.pids(data_dir), Soak(), time.monotonic()
    known = Counter(await asyncio.to_thread(complaints, data_dir))
    while True:
        now_s = time.monotonic() - began
        samples.add(now_s, await asyncio.to_thread(bench.pss_mib))
        note(figures := _figures(samples))
        if now_s >= minutes * 60:
            break
        await asyncio.sleep(min(SAMPLE_S, max(0.0, minutes * 60 - now_s)))
    after = await faults.pids(data_dir)
    bad = list((Counter(await asyncio.to_thread(complaints, data_dir)) - known).elements())
    return figures | {
        "restarted": sorted(name for name in before if after.get(name) != before[name]),
        "lines_of_errors": len(bad),
        "first_of_them": bad[:3],
    }


def _figures(samples: Soak) -> Json:
    growth = samples.growth_mib_per_h()
    own = {name: value for name, value in growth.items() if name not in PARTS}
    worst = max(own, key=own.__getitem__, default="")
    return {
        "minutes": round(samples.at_s[-1] / 60, 1),
        "worst_service": worst,
        "worst_growth_mib_per_h": own.get(worst),
        "growth_mib_per_h": growth,
        "mib_at_first": {name: values[0] for name, values in samples.mib.items()},
        "mib_at_last": {name: values[-1] for name, values in samples.mib.items()},
    }


def complaints(data_dir: Path) -> list[str]:
    """Lines of the services' logs that are errors, or that no service would write."""
    found = []
    for path in sorted((data_dir / "logs").glob("*.log*")):
        if path.name.partition(".")[0] in {*PARTS, "supervisord"}:
            continue
        for line in path.read_text(errors="replace").splitlines():
            if is_bad(line):
                found.append(f"{path.name}: {line[:300]}")
    return found


def is_bad(line: str) -> bool:
    try:
        return json.loads(line).get("level") in BAD
    except (ValueError, AttributeError):
        return bool(line.strip())
