"""One machine that runs the shortest remaining job, preempted at no cost: its order of ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Arrival(NamedTuple):
    """A job that comes at `at_s` and needs the machine for `needs_s`."""

    at_s: float
    job_id: str
    needs_s: float


class Advanced(NamedTuple):
    """Jobs that have ended with the time, in order, and the rests of the others, s."""

    ended: list[tuple[str, float]]
    rest_s: dict[str, float]


def advance(
    rest_s: Mapping[str, float], arrivals: Sequence[Arrival], from_s: float, to_s: float
) -> Advanced:
    """Return the machine at `to_s`; of equal rests the first id is served.

    An arrival before `from_s` counts from then on.
    """
    left = dict(rest_s)
    coming = sorted(arrivals)
    ended: list[tuple[str, float]] = []
    at_s = from_s
    while True:
        while coming and coming[0].at_s <= at_s:
            arrival = coming.pop(0)
            left[arrival.job_id] = arrival.needs_s
        until_s = min(to_s, coming[0].at_s) if coming else to_s
        if not left:
            if not coming or until_s >= to_s:
                return Advanced(ended, left)
            at_s = until_s
            continue
        served = min(left, key=lambda job_id: (left[job_id], job_id))
        if at_s + left[served] <= until_s:
            at_s += left.pop(served)
            ended.append((served, at_s))
            continue
        left[served] -= until_s - at_s
        at_s = until_s
        if at_s >= to_s and not (coming and coming[0].at_s <= at_s):
            return Advanced(ended, left)
