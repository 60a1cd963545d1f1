"""Starts of a decider over a played ledger, each in a process of its own, and its memory then.

`python -m benchmarks.parts.year.starting LEDGER FILE` folds the records of a file and prints what
it took as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from services.admission.core.decide import Admission
from services.placement.core.decide import Placement
from services.priority.core.decide import Priority
from services.throttle.core.decide import Throttle
from shared.bus.folds.snapshots import Snapshots
from shared.ledger.decider import Decider
from shared.ledger.reader import Reader

MIB = 1024
DECIDERS: dict[str, Callable[[], Decider[Any]]] = {
    "admission": Admission,
    "priority": Priority,
    "placement": Placement,
    "throttle": Throttle,
}


class MeasuredStart(TypedDict):
    """Events folded, seconds from 0 and from a checkpoint, memory at the end."""

    events: int
    zero_s: float
    checkpoint_s: float
    checkpoint_mib: float
    rss_mib: float


async def measure_start(ledger: str, path: Path) -> MeasuredStart:
    """Fold the ledger in a new process. Raises ValueError with its error if it fails."""
    command = (sys.executable, "-m", "benchmarks.parts.year.starting", ledger, str(path))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    if process.returncode:
        raise ValueError(f"{ledger}: its ledger cannot be folded: {err.decode()[-300:]}")
    start: MeasuredStart = json.loads(out)
    return start


def fold_file(decider: Decider[Any], path: Path) -> tuple[Reader, Any, int]:
    """Return reader, state and number of events at the end of a file of records."""
    reader, state, events = Reader(decider.ledger, 0), decider.initial(0), 0
    with path.open("rb") as lines:
        for offset, line in enumerate(lines):
            accepted = reader.offer(offset, line)
            for fact in accepted.facts(own=True) if accepted else ():
                decider.evolve(state, fact)
                events += 1
    return reader, state, events


def start(ledger: str, path: Path, folder: Path) -> MeasuredStart:
    """Start from 0, store a checkpoint, and start from it."""
    decider = DECIDERS[ledger]()
    began_s = time.perf_counter()
    reader, state, events = fold_file(decider, path)
    zero_s = time.perf_counter() - began_s
    gc.collect()
    rss_mib = resident_mib()
    snapshots = Snapshots[Any](folder, ledger, 0, "year")
    packed = snapshots.pack(reader.cursor, state)
    snapshots.store(reader.cursor.seq, packed)
    began_s = time.perf_counter()
    assert snapshots.load() is not None, "it was stored just now"
    return {
        "events": events,
        "zero_s": round(zero_s, 3),
        "checkpoint_s": round(time.perf_counter() - began_s, 3),
        "checkpoint_mib": round(len(packed) / 2**20, 2),
        "rss_mib": round(rss_mib, 1),
    }


def resident_mib() -> float:
    """Return the memory of this process that is in use now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    resident = next(line for line in lines if line.startswith("VmRSS:"))
    return int(resident.split()[1]) / MIB


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        sys.stdout.write(json.dumps(start(sys.argv[1], Path(sys.argv[2]), Path(scratch))))
