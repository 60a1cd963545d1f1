"""A quick bound on what any plan of a round can gain over greedy's.

Most contended rounds leave nothing to gain: on equal nodes greedy's plan is nearly always the
best one. The bound shows it at a fraction of the cost of a search, so that the solver is used
only where it could win.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import attrgetter

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.bound_by_parts import most_by_parts
from services.placement.core.solver.bound_by_sites import most_by_sites
from services.placement.core.solver.instance import GangRequest, Instance, NodeClass, Victim
from services.placement.core.solver.knapsacks import Item, fractional, item_of, knapsack
from services.placement.core.solver.objective import score

STEPS_MOST = 200_000
"""Steps of an exact knapsack, at most; a fractional one bounds larger rounds."""


def most_gain(instance: Instance) -> int:
    """Return a value by which no plan can score more than greedy's; at most 0: nothing to gain.

    Starts, reservations and what they stop count; that nodes would be tidier alone does not.
    """
    terms = score(instance, instance.greedy).terms
    planned = terms["value"] + terms["racks"] + terms["nodes"] + terms["lost_work"]
    by_sites = most_by_sites(instance, planned)
    if by_sites is None:
        return most_value(instance) - planned
    # The other bounds know no releases.
    return (by_sites if instance.releases else min(by_sites, most_value(instance))) - planned


def most_value(instance: Instance) -> int:
    """Return a bound on the value of any plan's starts and reservations, less what they stop.

    Each job runs at its best speed, on one node and in one rack, and needs GPUs, cores or memory
    alone: the least of the bounds holds.
    """
    bounds = [
        most_by_gpus(instance),
        most_by(instance, attrgetter("cpu_milli")),
        most_by(instance, attrgetter("mem_mib")),
    ]
    if (by_parts := most_by_parts(instance)) is not None:
        bounds.append(by_parts)
    return min(bounds)


def most_by_gpus(instance: Instance) -> int:
    """Return the bound by whole GPUs where there are only such, else by thousandths of them."""
    items = [item_of(request, request.gpus * request.milli) for request in instance.requests]
    free = sum(len(cls.nodes) * free_milli(cls) for cls in instance.classes)
    back = sum(map(gpus_of, instance.victims))
    if any(request.is_share for request in instance.requests):
        return fractional(items, free + back * GPU)
    whole = [Item(item.need // GPU, item.value) for item in items]
    capacity = free // GPU + back
    if capacity * len(whole) > STEPS_MOST:
        return fractional(whole, capacity)
    starts, later = [], []
    for item, request in zip(whole, instance.requests, strict=True):
        if not request.victims:
            starts.append((item, request))
        elif (price := stops_least(instance, request)) is not None:
            later.append((item, request, price))
    offers = [(price_of(instance, v), gpus) for v in instance.victims if (gpus := gpus_of(v))]
    by_all = most_of_both(
        knapsack([item for item, _ in starts], free // GPU),
        knapsack([item for item, _, _ in later], capacity),
        prices_of(offers, back),
    )
    paid = [(Item(item.need, max(0, item.value - price)), r) for item, r, price in later]
    return min(by_all, most_by_size(instance, starts, paid, (free // GPU, capacity)))


def most_by_size(
    instance: Instance,
    starts: Sequence[tuple[Item, GangRequest]],
    later: Sequence[tuple[Item, GangRequest]],
    capacities: tuple[int, int],
) -> int:
    """Return the bound where the largest workers need their GPUs side by side, others do not.

    The value of reservations (`later`) is less what they stop; `capacities`: GPUs, free and in all.
    """
    size = max((request.gpus for request in instance.requests), default=0)
    if not size:
        return most_of_both(
            knapsack([item for item, _ in starts], capacities[0]),
            knapsack([item for item, _ in later], capacities[1]),
        )
    now = sum(len(cls.nodes) * (cls.whole // size) for cls in instance.classes)
    then = sum(len(cls.nodes) * ((cls.whole + freed_gpus(cls)) // size) for cls in instance.classes)

    def of_size(pairs: Sequence[tuple[Item, GangRequest]]) -> list[Item]:
        return [Item(r.min_workers, item.value) for item, r in pairs if r.gpus == size]

    def others(pairs: Sequence[tuple[Item, GangRequest]]) -> list[Item]:
        return [item for item, request in pairs if request.gpus != size]

    largest = most_of_both(knapsack(of_size(starts), now), knapsack(of_size(later), then))
    return largest + most_of_both(
        knapsack(others(starts), capacities[0]), knapsack(others(later), capacities[1])
    )


def most_of_both(
    started: Sequence[int], reserved: Sequence[int], costs: Sequence[int] | None = None
) -> int:
    """Return the most value of starts on what is free with reservations on that and what is freed.

    `started` is by the free GPUs that starts take, `reserved` by the GPUs that reservations take,
    `costs` by the GPUs that stops free; without it all of them are freed at no cost.
    """
    last = len(started) - 1
    if costs is None:
        most = len(reserved) - 1
        return max(value + reserved[most - taken] for taken, value in enumerate(started))
    import numpy as np  # it starts threads, which a fork of the supervisor would lose

    values, prices = np.array(reserved, np.int64), np.array(costs, np.int64)
    return max(
        value + int((values[last - taken :][: len(prices)] - prices).max())
        for taken, value in enumerate(started)
    )


def gpus_of(victim: Victim) -> int:
    """Return the GPUs that a stop of the victim frees."""
    return victim.request.gpus * victim.request.min_workers


def freed_gpus(cls: NodeClass) -> int:
    """Return the GPUs of a node that all its victims hold."""
    return sum(share.whole for share in cls.victim_shares)


def price_of(instance: Instance, victim: Victim) -> int:
    """Return the least price of a stop: that of a migration only where its gang finds free GPUs."""
    request = victim.request
    if victim.migration_price >= victim.price:
        return victim.price
    room = sum(
        len(instance.classes[index].nodes)
        * (instance.classes[index].whole // request.gpus if request.gpus else 1)
        for index in request.classes
    )
    is_movable = request.is_share or room >= request.min_workers
    return victim.migration_price if request.classes and is_movable else victim.price


def stops_least(instance: Instance, request: GangRequest) -> int | None:
    """Return what the stops for a reservation cost at least, each GPU at its part of the price.

    A worker needs its GPUs side by side, so that those beyond the free ones of its node are freed
    there. None: there is no place for all workers, whatever stops.
    """
    if not request.gpus:
        return 0
    offers = sorted(worker_price(instance, instance.classes[at], request) for at in request.classes)
    left, paid = request.min_workers, 0.0
    for price, workers in offers:
        taken = min(left, workers)
        paid += taken * price
        left -= taken
    return None if left else int(paid)


def worker_price(instance: Instance, cls: NodeClass, request: GangRequest) -> tuple[float, int]:
    """Return the least price of a worker on nodes of a class, and how many those hold at most."""
    prices = sorted(
        price_of(instance, victim) / max(1, gpus_of(victim))
        for share in cls.victim_shares
        for victim in [instance.victims[share.victim]] * share.whole
    )
    sums = [0.0, *accumulate(prices)]
    most = (cls.whole + len(prices)) // request.gpus
    least = min(
        (sums[max(0, n * request.gpus - cls.whole)] / n for n in range(1, most + 1)), default=0.0
    )
    return least, most * len(cls.nodes)


def free_milli(cls: NodeClass) -> int:
    """Return the thousandths of GPUs that are free on a node of this class."""
    return cls.whole * GPU + sum(cls.partial)


def most_by(instance: Instance, resource: Callable[[GangRequest | NodeClass], int]) -> int:
    """Return the bound by cores or memory alone, those of stopped jobs included."""
    items = [item_of(request, resource(request)) for request in instance.requests]
    back = sum(resource(v.request) * v.request.min_workers for v in instance.victims)
    free = sum(len(cls.nodes) * resource(cls) for cls in instance.classes)
    return fractional(items, back + free)


def prices_of(offers: Sequence[tuple[int, int]], gpus: int) -> list[int]:
    """Return the least price of each number of GPUs from 0 to `gpus` that stops could free."""
    gpu_prices = sorted(price / count for price, count in offers for _ in range(count))
    return [0, *(int(price) for price in accumulate(gpu_prices[:gpus]))]
