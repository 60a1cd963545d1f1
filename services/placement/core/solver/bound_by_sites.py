"""A quick bound on the value of starts where GPU types or links make nodes differ for a job.

A site is a set of free nodes on which each job of the round has one speed, of one rack where links
count. Each GPU of a site gets a price; a plan is then worth at most all GPUs at their prices, and
for each job what its best choice is worth above the price of the GPUs that it takes (the Lagrangian
dual of the assignment of jobs to sites). Every set of prices gives a bound, so the search for low
ones may end at any moment; it steps towards greedy's value as by Polyak, "Minimization of unsmooth
functionals", 1969.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.instance import GangRequest, Instance, NodeClass
from services.placement.core.solver.objective import at_speed, link_speed, linked
from services.placement.core.solver.places import workers_now

STEPS = 60
"""Most sets of prices that are tried."""
LOOKED_AT = 200_000
"""Most prices of sites that all of these sets look at for jobs; large rounds try fewer sets."""
CLOSE = 1e-6
"""Part of greedy's value within which a bound counts as equal to it; sums are of floats."""


class Site(NamedTuple):
    """Classes of one rack on which each job has one speed; free thousandths of GPUs."""

    classes: tuple[int, ...]
    rack: int
    milli: int


class PricedStart(NamedTuple):
    """A way to start a job: its value, its thousandths of GPUs, and the sites that may hold it."""

    value: int
    milli: int
    sites: tuple[int, ...]


def most_by_sites(instance: Instance, planned: int) -> int | None:
    """Return a bound on the value of starts and waits; None where nodes differ for no job.

    `planned`: the value of greedy's plan, at which the search for a lower bound ends. Rounds in
    which a job may stop others have no such bound.
    """
    if any(request.victims for request in instance.requests) or not differ(instance):
        return None
    sites = sites_of(instance)
    choices = [
        [*choices_of(instance, request, sites), *waits_of(request, len(sites))]
        for request in instance.requests
    ]
    must = [request.must_start for request in instance.requests]
    milli = [site.milli for site in sites] + [own.gpus * GPU for own in instance.releases]
    return lowest(choices, must, milli, planned)


def differ(instance: Instance) -> bool:
    """Return whether some job has several speeds, or declares what its links leave of them."""
    return bool(instance.releases) or any(
        len(set(request.speeds)) > 1 or request.spread is not None for request in instance.requests
    )


def waits_of(request: GangRequest, first: int) -> Iterator[PricedStart]:
    """Yield the waits of a job; releases are sites from number `first` on."""
    for release, speed in request.waits:
        milli = request.gpus * request.milli
        yield PricedStart(at_speed(request.value, speed), milli, (first + release,))


def sites_of(instance: Instance) -> list[Site]:
    alike = {
        (r.classes, r.speeds): dict(zip(r.classes, r.speeds, strict=True))
        for r in instance.requests
    }
    has_links = any(request.spread is not None for request in instance.requests)
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for index, cls in enumerate(instance.classes):
        speeds = tuple(of_class.get(index, 0) for of_class in alike.values())
        groups.setdefault((cls.rack if has_links else 0, speeds), []).append(index)
    return [
        Site(tuple(own), rack, sum(free_milli(instance.classes[at]) for at in own))
        for (rack, _), own in groups.items()
    ]


def free_milli(cls: NodeClass) -> int:
    """Return the thousandths of GPUs that are free on all nodes of a class."""
    return len(cls.nodes) * (cls.whole * GPU + sum(cls.partial))


def choices_of(
    instance: Instance, request: GangRequest, sites: Sequence[Site]
) -> Iterator[PricedStart]:
    """Yield at least one choice for each way to start the job, worth no less and no dearer."""
    speeds = dict(zip(request.classes, request.speeds, strict=True))
    milli = request.gpus * request.milli * request.min_workers
    extra = request.extra * (request.max_workers - request.min_workers)
    rooms = {n: rooms_of(instance, request, site, speeds) for n, site in enumerate(sites)}
    for level in sorted(set(request.speeds), reverse=True):
        open_sites = [
            n for n, room in rooms.items() if room[1] and speed_at(sites[n], speeds) >= level
        ]
        for tier, group in tiers_of(request, sites, rooms, open_sites):
            value = at_speed(request.value, linked(level, link_speed(request, tier)))
            yield PricedStart(value + extra, milli, group)


def speed_at(site: Site, speeds: dict[int, int]) -> int:
    return max(speeds.get(cls, 0) for cls in site.classes)


def rooms_of(
    instance: Instance, request: GangRequest, site: Site, speeds: dict[int, int]
) -> tuple[int, int]:
    """Return the most workers on one node of the site, and on all of them."""
    most = total = 0
    for index in site.classes:
        if index in speeds:
            per_node = workers_now(instance.classes[index], request)
            most = max(most, per_node)
            total += per_node * len(instance.classes[index].nodes)
    return most, total


def tiers_of(
    request: GangRequest,
    sites: Sequence[Site],
    rooms: dict[int, tuple[int, int]],
    open_sites: Sequence[int],
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each tier of links with the sites between which the gang could be.

    One that does not declare its links is as fast on all of them.
    """
    if request.spread is None:
        if sum(rooms[n][1] for n in open_sites) >= request.min_workers:
            yield 0, tuple(open_sites)
        return
    for n in open_sites:
        if rooms[n][0] >= request.min_workers:
            yield 0, (n,)
    racks: dict[int, list[int]] = {}
    for n in open_sites:
        racks.setdefault(sites[n].rack, []).append(n)
    for own in racks.values():
        if sum(rooms[n][1] for n in own) >= request.min_workers:
            yield 1, tuple(own)
    if sum(rooms[n][1] for n in open_sites) >= request.min_workers:
        yield 2, tuple(open_sites)


def lowest(
    choices: Sequence[Sequence[PricedStart]],
    must: Sequence[bool],
    milli: Sequence[int],
    planned: int,
) -> int:
    """Return the lowest bound of those that the search finds."""
    prices = [0.0] * len(milli)
    best = float("inf")
    size = sum(len(choice.sites) for own in choices for choice in own)
    for _ in range(max(1, min(STEPS, LOOKED_AT // max(1, size)))):
        bound, left = priced(choices, must, milli, prices)
        best = min(best, bound)
        over = bound - planned
        length = sum(rest * rest for rest in left)
        if best <= planned * (1 + CLOSE) or not length:
            break
        prices = [
            max(0.0, price - over / length * rest) for price, rest in zip(prices, left, strict=True)
        ]
    return planned if best <= planned * (1 + CLOSE) else int(best)


def priced(
    choices: Sequence[Sequence[PricedStart]],
    must: Sequence[bool],
    milli: Sequence[int],
    prices: Sequence[float],
) -> tuple[float, list[float]]:
    """Return the bound of these prices, and the thousandths that it leaves of each site."""
    left = [float(free) for free in milli]
    bound = sum(price * free for price, free in zip(prices, milli, strict=True))
    for own, has_to in zip(choices, must, strict=True):
        most, taken = (float("-inf"), None) if has_to and own else (0.0, None)
        for choice in own:
            site = min(choice.sites, key=prices.__getitem__)
            worth = choice.value - choice.milli * prices[site]
            if worth > most:
                most, taken = worth, (site, choice.milli)
        bound += most
        if taken is not None:
            left[taken[0]] -= taken[1]
    return bound, left
