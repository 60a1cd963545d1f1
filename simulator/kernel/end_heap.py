"""When the running jobs end: a binary heap by (time, job), in which each job knows its place."""

from __future__ import annotations

from simulator.kernel.compiled import compiled
from simulator.kernel.state import Ends, Jobs


@compiled
def before(ends: Ends, a: int, b: int) -> bool:
    one, other = ends[a], ends[b]
    return one.at_ms < other.at_ms or (one.at_ms == other.at_ms and one.job < other.job)


@compiled
def put(ends: Ends, jobs: Jobs, at: int, at_ms: int, job: int) -> None:
    ends[at].at_ms = at_ms
    ends[at].job = job
    jobs[job].ends_at = at


@compiled
def swap(ends: Ends, jobs: Jobs, a: int, b: int) -> None:
    at_ms, job = ends[a].at_ms, ends[a].job
    put(ends, jobs, a, ends[b].at_ms, ends[b].job)
    put(ends, jobs, b, at_ms, job)


@compiled
def rise(ends: Ends, jobs: Jobs, start: int) -> None:
    at = start
    while at and before(ends, at, (at - 1) // 2):
        swap(ends, jobs, at, (at - 1) // 2)
        at = (at - 1) // 2


@compiled
def sink(ends: Ends, jobs: Jobs, start: int, size: int) -> None:
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
    """One more, to a heap of `size`."""
    put(ends, jobs, size, at_ms, job)
    rise(ends, jobs, size)


@compiled
def remove(ends: Ends, jobs: Jobs, size: int, job: int) -> None:
    """One less, from a heap of `size`."""
    at = jobs[job].ends_at
    last = size - 1
    put(ends, jobs, at, ends[last].at_ms, ends[last].job)
    sink(ends, jobs, at, last)
    if at < last:
        rise(ends, jobs, at)
