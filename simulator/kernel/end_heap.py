"""Ends of the running jobs: a binary heap by (time, job) in which each job has its index."""

from __future__ import annotations

from simulator.kernel.compiled import compiled
from simulator.kernel.state import Ends, Jobs


@compiled
def before(ends: Ends, a: int, b: int) -> bool:
    """Return whether entry a ends before entry b."""
    one, other = ends[a], ends[b]
    return one.at_ms < other.at_ms or (one.at_ms == other.at_ms and one.job < other.job)


@compiled
def put(ends: Ends, jobs: Jobs, at: int, at_ms: int, job: int) -> None:
    """Write an entry and its index."""
    ends[at].at_ms = at_ms
    ends[at].job = job
    jobs[job].heap_index = at


@compiled
def swap(ends: Ends, jobs: Jobs, a: int, b: int) -> None:
    """Exchange two entries."""
    at_ms, job = ends[a].at_ms, ends[a].job
    put(ends, jobs, a, ends[b].at_ms, ends[b].job)
    put(ends, jobs, b, at_ms, job)


@compiled
def rise(ends: Ends, jobs: Jobs, start: int) -> None:
    """Move an entry up to its place."""
    at = start
    while at and before(ends, at, (at - 1) // 2):
        swap(ends, jobs, at, (at - 1) // 2)
        at = (at - 1) // 2


@compiled
def sink(ends: Ends, jobs: Jobs, start: int, size: int) -> None:
    """Move an entry down to its place."""
    at = start
    least = 2 * at + 1
    while least < size:
        if least + 1 < size and before(ends, least + 1, least):
            least += 1
        if not before(ends, least, at):
            return
        swap(ends, jobs, at, least)
        at = least
        least = 2 * at + 1


@compiled
def add(ends: Ends, jobs: Jobs, size: int, at_ms: int, job: int) -> None:
    """Add a job to a heap of `size`."""
    put(ends, jobs, size, at_ms, job)
    rise(ends, jobs, size)


@compiled
def remove(ends: Ends, jobs: Jobs, size: int, job: int) -> None:
    """Remove a job from a heap of `size`."""
    at = jobs[job].heap_index
    last = size - 1
    put(ends, jobs, at, ends[last].at_ms, ends[last].job)
    sink(ends, jobs, at, last)
    if at < last:
        rise(ends, jobs, at)
