"""Cores and memory for the jobs of one round: proportional, greedy, or tuned as by Synergy.

Mohan et al., "Looking Beyond GPUs for DNN Scheduling on Multi-Tenant Clusters", OSDI '22. Order and
number of GPUs of the jobs are decided before. `tune` gives no job less speed than its proportional
share does, and places each job whose GPUs are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from services.placement.core.allotment.sensitivity import PerGpu
from services.placement.core.allotment.servers import Allotted, AllottedServers, Server


class Needs(NamedTuple):
    """A job of the round: its GPUs, and what beside each of them gives it full speed."""

    job_id: str
    gpus: int
    requested: PerGpu


def first_that_fit(jobs: Iterable[Needs], gpus: int) -> list[Needs]:
    """Return the longest beginning of the order that has so many GPUs or fewer."""
    taken: list[Needs] = []
    for job in jobs:
        gpus -= job.gpus
        if gpus < 0:
            break
        taken.append(job)
    return taken


def proportional(capacity: Sequence[Server], jobs: Iterable[Needs]) -> Mapping[str, Allotted]:
    """Give each GPU its part of the cores and memory of its server."""
    servers = AllottedServers(tuple(capacity))
    for job in jobs:
        _put_fair(servers, job)
    return servers.allotted


def greedy(capacity: Sequence[Server], jobs: Iterable[Needs]) -> Mapping[str, Allotted]:
    """Give each job the share of its full speed, on the first servers that have it, or none."""
    servers = AllottedServers(tuple(capacity))
    for job in jobs:
        gpus = _search(servers, job, job.requested, range(len(capacity)))
        if gpus:
            servers.put(job.job_id, Allotted(gpus, job.requested))
    return servers.allotted


def tune(capacity: Sequence[Server], jobs: Iterable[Needs]) -> Mapping[str, Allotted]:
    """Give each job the share of its full speed where that is free, else its proportional one.

    The largest jobs are first. Where the share is not free, jobs there that have more than theirs
    give back what is over it.
    """
    servers = AllottedServers(tuple(capacity))
    for job in sorted(jobs, key=lambda job: (-job.gpus, *(-n for n in job.requested), job.job_id)):
        gpus = _search(servers, job, job.requested, servers.fullest_first())
        if gpus:
            servers.put(job.job_id, Allotted(gpus, job.requested))
        else:
            _put_fair(servers, job)
    return servers.allotted


def _put_fair(servers: AllottedServers, job: Needs) -> None:
    """Put a job with its proportional share, or with that of its full speed if it is no more."""
    gpus = _search_fair(servers, job)
    if not gpus:
        return
    fair = servers.fair_on(gpus)
    share = fair if job.requested.exceeds(fair) else job.requested
    for number, count in gpus.items():
        _reclaim(servers, number, count, share)
    servers.put(job.job_id, Allotted(gpus, share))


def _search_fair(servers: AllottedServers, job: Needs) -> dict[int, int]:
    """Return servers where the proportional share is free, else those where the GPUs are."""

    def fair_room(number: int) -> int:
        return servers.room(number, servers.capacity[number].fair)

    order = servers.fullest_first()
    return _gather(job.gpus, order, fair_room) or _gather(
        job.gpus, order, lambda number: servers.free_gpus[number]
    )


def _search(
    servers: AllottedServers, job: Needs, share: PerGpu, order: Iterable[int]
) -> dict[int, int]:
    return _gather(job.gpus, list(order), lambda number: servers.room(number, share))


def _gather(requested: int, order: Sequence[int], room: Callable[[int], int]) -> dict[int, int]:
    """Return the first server with room for all GPUs, else GPUs of the first servers; else none."""
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


def _reclaim(servers: AllottedServers, number: int, gpus: int, share: PerGpu) -> None:
    """Shrink jobs of a server to their proportional share until so many GPUs' share is free."""
    peers = sorted(
        servers.on(number),
        key=lambda item: (len(item[1].gpus), *(-n for n in item[1].share), item[0]),
    )
    for name, own in peers:
        if servers.room(number, share) >= gpus:
            return
        fair = servers.fair_on(own.gpus)
        if own.share.exceeds(fair):
            servers.shrink(name, fair)
