"""Cores and memory for the jobs of one round: proportional, greedy, or tuned as by Synergy.

Mohan et al., "Looking Beyond GPUs for DNN Scheduling on Multi-Tenant Clusters", OSDI '22. Order and
number of GPUs of the jobs are decided before. `tune` gives no job less speed than its proportional
share does, and places each job whose GPUs are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from shared.schedulers.host_shares.node_shares import HeldShares, HostCapacity, HostShare
from shared.schedulers.host_shares.sensitivity import PerGpu


class Needs(NamedTuple):
    """A job of the round: its GPUs, and what beside each of them gives it full speed."""

    job_id: str
    gpus: int
    requested: PerGpu


def proportional(
    capacity: Sequence[HostCapacity], jobs: Iterable[Needs]
) -> Mapping[str, HostShare]:
    """Give each GPU its part of the cores and memory of its node."""
    held = HeldShares(tuple(capacity))
    for job in jobs:
        _put_fair(held, job)
    return held.by_job


def greedy(capacity: Sequence[HostCapacity], jobs: Iterable[Needs]) -> Mapping[str, HostShare]:
    """Give each job the share of its full speed, on the first nodes that have it, or none."""
    held = HeldShares(tuple(capacity))
    for job in jobs:
        gpus = _search(held, job, job.requested, range(len(capacity)))
        if gpus:
            held.put(job.job_id, HostShare(gpus, job.requested))
    return held.by_job


def tune(capacity: Sequence[HostCapacity], jobs: Iterable[Needs]) -> Mapping[str, HostShare]:
    """Give each job the share of its full speed where that is free, else its proportional one.

    Jobs are placed in their order, each on the first nodes that have its share, as in the released
    simulator. Where the proportional share is not free either, jobs on the fullest nodes that have
    more than theirs give back what is over it.
    """
    held = HeldShares(tuple(capacity))
    for job in jobs:
        gpus = _search(held, job, job.requested, range(len(capacity)))
        if gpus:
            held.put(job.job_id, HostShare(gpus, job.requested))
        else:
            _put_fair(held, job)
    return held.by_job


def _put_fair(held: HeldShares, job: Needs) -> None:
    """Put a job with its proportional share, or with that of its full speed if it is no more."""
    gpus = _search_fair(held, job)
    if not gpus:
        return
    fair = held.fair_on(gpus)
    share = fair if job.requested.exceeds(fair) else job.requested
    for number, count in gpus.items():
        _reclaim(held, number, count, share)
    held.put(job.job_id, HostShare(gpus, share))


def _search_fair(held: HeldShares, job: Needs) -> dict[int, int]:
    """Return nodes where the proportional share is free, else those where the GPUs are."""

    def fair_room(number: int) -> int:
        return held.room(number, held.capacity[number].fair)

    return _gather(job.gpus, range(len(held.capacity)), fair_room) or _gather(
        job.gpus, held.fullest_first(), lambda number: held.free_gpus[number]
    )


def _search(held: HeldShares, job: Needs, share: PerGpu, order: Iterable[int]) -> dict[int, int]:
    return _gather(job.gpus, list(order), lambda number: held.room(number, share))


def _gather(requested: int, order: Sequence[int], room: Callable[[int], int]) -> dict[int, int]:
    """Return the first node with room for all GPUs, else GPUs of the first nodes; else none."""
    for number in order:
        if room(number) >= requested:
            return {number: requested}
    gpus: dict[int, int] = {}
    for number in order:
        if count := min(requested, room(number)):
            gpus[number] = count
            requested -= count
        if not requested:
            return gpus
    return {}


def _reclaim(held: HeldShares, number: int, gpus: int, share: PerGpu) -> None:
    """Shrink jobs of a node to their proportional share until so many GPUs' share is free."""
    peers = sorted(
        held.on(number), key=lambda item: (len(item[1].gpus), *(-n for n in item[1].share), item[0])
    )
    for name, own in peers:
        if held.room(number, share) >= gpus:
            return
        fair = held.fair_on(own.gpus)
        if own.share.exceeds(fair):
            held.shrink(name, fair)
