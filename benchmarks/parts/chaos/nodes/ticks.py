"""The notes of workers while they hold a GPU, and the overlaps that must never be in them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

WORKER = """
import os, sys, time
folder, seconds = sys.argv[1], float(sys.argv[2])
env = os.environ
names = [env[f"BERTH_{name}"] for name in ("JOB_ID", "ATTEMPT", "RANK")]
node = env["BERTH_NODE_ID"]
ends_s = time.clock_gettime(time.CLOCK_BOOTTIME) + seconds
logs = {}
for gpu in env["CUDA_VISIBLE_DEVICES"].split(","):
    path = f"{folder}/{node}.{gpu}"
    logs[gpu] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
word = "start"
while True:
    now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    for gpu, log in logs.items():
        times = [str(round(now_s * 1000)), str(round(time.time() * 1000))]
        os.write(log, (" ".join([*times, word, *names, gpu, node]) + "\\n").encode())
    if word == "end":
        print("complete", flush=True)
        break
    if now_s >= ends_s or os.path.exists(f"{folder}.end"):
        word = "end"
    else:
        word = "tick"
        time.sleep(0.1)
"""
"""Appends a line for each of its GPUs at its start, ten times a second and at its end, which comes
after so many seconds or when there is a file beside the folder whose name ends in `.end`. A worker
that is killed notes no end: its last tick was the last moment at which it is known to live."""


class Tick(NamedTuple):
    """A line of a worker: times in ms, the boot clock's and the wall clock's, and who wrote it."""

    boot_ms: int
    wall_ms: int
    word: str
    """`start`, `tick` or `end`."""
    job: str
    attempt: int
    rank: int
    gpu: int
    node: str

    @property
    def worker(self) -> tuple[str, int, str, int, int]:
        """Node, GPU, job, attempt and rank: one worker on one GPU."""
        return self.node, self.gpu, self.job, self.attempt, self.rank


Worker = tuple[str, int, int]
"""A job, its attempt and the rank."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The first and last tick, boot ms, of one worker on one GPU."""

    node: str
    gpu: int
    job: str
    attempt: int
    rank: int
    first_ms: int
    last_ms: int
    last_wall_ms: int = 0
    """The last tick on the wall clock of the machine, as times of ledger records."""

    @property
    def place(self) -> tuple[str, int]:
        return self.node, self.gpu

    @property
    def run(self) -> tuple[str, int]:
        """The job and its attempt."""
        return self.job, self.attempt

    def __str__(self) -> str:
        return (
            f"{self.job} attempt {self.attempt} rank {self.rank} on {self.node} GPU {self.gpu} "
            f"from {self.first_ms} to {self.last_ms}"
        )


def boot_ms() -> int:
    """Return CLOCK_BOOTTIME, as workers and agents note it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def read_ticks(folder: Path) -> Iterator[Tick]:
    """Yield the lines that the workers wrote to the files of a folder."""
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            boot, wall, word, job, attempt, rank, gpu, node = line.split()
            yield Tick(int(boot), int(wall), word, job, int(attempt), int(rank), int(gpu), node)


def read_uses(folder: Path) -> list[GpuUse]:
    """Return the uses of all GPUs that the workers noted in the files of a folder."""
    noted: dict[tuple[str, int, str, int, int], list[Tick]] = {}
    for tick in read_ticks(folder):
        noted.setdefault(tick.worker, []).append(tick)
    return [
        GpuUse(
            *worker,
            first_ms=min(tick.boot_ms for tick in ticks),
            last_ms=max(tick.boot_ms for tick in ticks),
            last_wall_ms=max(tick.wall_ms for tick in ticks),
        )
        for worker, ticks in noted.items()
    ]


def find_ticks_after(uses: Iterable[GpuUse], released_at_ms: Mapping[Worker, int]) -> list[str]:
    """Return uses that went on after the ledger had released the GPUs of their worker.

    `released_at_ms` has the time of the release by job, attempt and rank.
    """
    return [
        f"{use}; its GPUs were released {use.last_wall_ms - at_ms} ms before its last tick"
        for use in uses
        if (at_ms := released_at_ms.get((use.job, use.attempt, use.rank))) is not None
        and use.last_wall_ms > at_ms
    ]


def find_double_uses(uses: Iterable[GpuUse]) -> list[str]:
    """Return pairs of workers that ticked on one GPU in overlapping times."""
    by_place: dict[tuple[str, int], list[GpuUse]] = {}
    for use in uses:
        by_place.setdefault(use.place, []).append(use)
    return [f"{a}; {b}" for group in by_place.values() for a, b in _overlaps(group)]


def find_double_attempts(uses: Iterable[GpuUse]) -> list[str]:
    """Return pairs of workers of different attempts of one job in overlapping times, anywhere."""
    by_job: dict[str, list[GpuUse]] = {}
    for use in uses:
        by_job.setdefault(use.job, []).append(use)
    return [
        f"{a}; {b}"
        for group in by_job.values()
        for a, b in _overlaps(group)
        if a.attempt != b.attempt
    ]


def _overlaps(group: list[GpuUse]) -> Iterator[tuple[GpuUse, GpuUse]]:
    """Yield a pair for each use that begins before an earlier one has ended."""
    latest: GpuUse | None = None
    for before, after in pairwise(sorted(group, key=lambda use: use.first_ms)):
        if latest is None or before.last_ms > latest.last_ms:
            latest = before
        if after.first_ms <= latest.last_ms:
            yield latest, after
