"""Starts of a decider over a played ledger, each in a process of its own, and its memory then.

`python -m benchmarks.parts.year.starting LEDGER FILE JOBS` folds the records of a file and prints
what it took as JSON, and for admission what so many more ended jobs take, of which it keeps each.
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
from typing import Any, NotRequired, TypedDict

from services.admission.core.decide import Admission
from services.admission.core.ended_jobs import EndedJob
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


class MeasuredYear(TypedDict):
    """A decider with the ended jobs of a year: how many were added, its memory, its checkpoint, and
    the seconds in which that is copied, which hold its loop, and loaded."""

    ended_jobs: int
    rss_mib: float
    checkpoint_mib: float
    copy_s: float
    checkpoint_s: float


class MeasuredStart(TypedDict):
    """Events folded, seconds from 0 and from a checkpoint, memory at the end; `year` of admission
    alone."""

    events: int
    zero_s: float
    checkpoint_s: float
    checkpoint_mib: float
    rss_mib: float
    year: NotRequired[MeasuredYear]


async def measure_start(ledger: str, path: Path, ended_jobs: int) -> MeasuredStart:
    """Fold the ledger in a new process. Raises ValueError with its error if it fails."""
    command = ("-m", "benchmarks.parts.year.starting", ledger, str(path), str(ended_jobs))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=pipe, stderr=pipe
    )
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


def start(ledger: str, path: Path, folder: Path, ended_jobs: int) -> MeasuredStart:
    """Start from 0, store a checkpoint, start from it, and once more with a year's ended jobs."""
    decider = DECIDERS[ledger]()
    began_s = time.perf_counter()
    reader, state, events = fold_file(decider, path)
    zero_s = time.perf_counter() - began_s
    gc.collect()
    rss_mib = resident_mib()
    _, checkpoint_s, checkpoint_mib = checkpoint(reader, state, folder)
    measured: MeasuredStart = {
        "events": events,
        "zero_s": round(zero_s, 3),
        "checkpoint_s": checkpoint_s,
        "checkpoint_mib": checkpoint_mib,
        "rss_mib": round(rss_mib, 1),
    }
    if ledger == "admission":
        measured["year"] = with_ended_jobs(reader, state, folder, ended_jobs)
    return measured


def with_ended_jobs(reader: Reader, state: Any, folder: Path, ended_jobs: int) -> MeasuredYear:
    """Add ended jobs to the state of admission, and measure it again."""
    for number in range(ended_jobs):
        state.ended.add(f"year-{number}", EndedJob("succeeded", "year", "0"))
    rss_mib = resident_mib()
    copy_s, checkpoint_s, checkpoint_mib = checkpoint(reader, state, folder)
    return {
        "ended_jobs": ended_jobs,
        "rss_mib": round(rss_mib, 1),
        "checkpoint_mib": checkpoint_mib,
        "copy_s": copy_s,
        "checkpoint_s": checkpoint_s,
    }


def checkpoint(reader: Reader, state: Any, folder: Path) -> tuple[float, float, float]:
    """Store a checkpoint and load it; return seconds of its copy, those of its load, and MiB."""
    snapshots = Snapshots[Any](folder, "ledger", 0, "year")
    began_s = time.perf_counter()
    packed = snapshots.pack(reader.cursor, state)
    copy_s = time.perf_counter() - began_s
    snapshots.store(reader.cursor.seq, packed)
    mib = len(packed) / 2**20
    del packed
    began_s = time.perf_counter()
    assert snapshots.load() is not None, "it was stored just now"
    return round(copy_s, 3), round(time.perf_counter() - began_s, 3), round(mib, 2)


def resident_mib() -> float:
    """Return the memory of this process that is in use now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    resident = next(line for line in lines if line.startswith("VmRSS:"))
    return int(resident.split()[1]) / MIB


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        sys.stdout.write(
            json.dumps(start(sys.argv[1], Path(sys.argv[2]), Path(scratch), int(sys.argv[3])))
        )
