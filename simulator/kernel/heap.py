"""A binary heap of (time, job) in two arrays."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def before(times, jobs, a, b):
    return times[a] < times[b] or (times[a] == times[b] and jobs[a] < jobs[b])


@njit(cache=True)
def swap(times, jobs, a, b):
    times[a], times[b] = times[b], times[a]
    jobs[a], jobs[b] = jobs[b], jobs[a]


@njit(cache=True)
def push(times, jobs, size, time, job):
    at = size
    times[at] = time
    jobs[at] = job
    while at and before(times, jobs, at, (at - 1) // 2):
        swap(times, jobs, at, (at - 1) // 2)
        at = (at - 1) // 2
    return size + 1


@njit(cache=True)
def pop(times, jobs, size):
    """Removes the first; the new size."""
    size -= 1
    times[0] = times[size]
    jobs[0] = jobs[size]
    at = 0
    while True:
        least = 2 * at + 1
        if least >= size:
            return size
        if least + 1 < size and before(times, jobs, least + 1, least):
            least += 1
        if not before(times, jobs, least, at):
            return size
        swap(times, jobs, at, least)
        at = least
