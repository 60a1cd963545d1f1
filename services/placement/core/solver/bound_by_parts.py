"""A quick bound on the value of starts where jobs take parts of GPUs.

The free thousandths of partly used GPUs say little: most of them hold no waiting job. A worker that
no such GPU could hold needs an unused one, and has it alone where no waiting part is small enough
to lie beside it (a dual feasible function of bin packing: Fekete and Schepers, "New classes of fast
lower bounds for bin packing problems", 2001).
"""

from __future__ import annotations

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.instance import GangRequest, Instance
from services.placement.core.solver.knapsacks import Item, fractional, item_of


def most_by_parts(instance: Instance) -> int | None:
    """Return the bound; None for a round without parts, or with jobs that may stop others."""
    requests = instance.requests
    if instance.victims or not any(request.is_share for request in requests):
        return None
    least = min(request.milli for request in requests if request.gpus)
    roomiest = max((milli for cls in instance.classes for milli in cls.partial), default=0)
    unused = sum(len(cls.nodes) * cls.whole * GPU for cls in instance.classes)
    partly = sum(
        len(cls.nodes) * milli
        for cls in instance.classes
        for milli in cls.partial
        if milli >= least
    )
    total, alone, beside = 0, list[Item](), list[Item]()
    for request in requests:
        item = item_of(request, taken_milli(request, least))
        needs_unused = bool(request.gpus) and request.milli > roomiest
        if request.must_start:
            total += item.value
            unused -= item.need if needs_unused else 0
        elif needs_unused:
            alone.append(item)
        else:
            beside.append(item_of(request, request.gpus * request.milli))
    return total + fractional(alone, max(0, unused)) + fractional(beside, max(0, unused) + partly)


def taken_milli(request: GangRequest, least: int) -> int:
    """Return the thousandths that a worker takes of unused GPUs: all where nothing fits beside."""
    return request.gpus * (GPU if request.milli > GPU - least else request.milli)
