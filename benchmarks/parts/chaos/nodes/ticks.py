"""The notes of workers while they hold a GPU, and the overlaps that must never be in them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

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
while True:
    now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    for gpu, log in logs.items():
        line = " ".join([str(round(now_s * 1000)), *names, gpu, node])
        os.write(log, f"{line}\\n".encode())
    if now_s >= ends_s or os.path.exists(f"{folder}.end"):
        print("complete", flush=True)
        break
    time.sleep(0.1)
"""
"""Appends a line for each of its GPUs ten times a second, for so many seconds or until there is a
file beside the folder whose name ends in `.end`."""


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


def read_uses(folder: Path) -> list[GpuUse]:
    """Return the uses of all GPUs that the workers noted in the files of a folder."""
    ticks: dict[tuple[str, int, str, int, int], list[int]] = {}
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            at_ms, job, attempt, rank, gpu, node = line.split()
            worker = node, int(gpu), job, int(attempt), int(rank)
            ticks.setdefault(worker, []).append(int(at_ms))
    return [GpuUse(*worker, min(times), max(times)) for worker, times in ticks.items()]


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
