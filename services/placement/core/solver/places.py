"""The places of the model: single nodes, and bundles of nodes that are all alike.

A single node is a bin that jobs share. Of a class with many nodes some stand in a bundle: there
a node serves one job, with as many of its workers as it holds, so a bundle of any length costs
the model one number per job.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from services.placement.core.pool.shape import GPU, limit_workers
from services.placement.core.solver.instance import (
    FreeNode,
    GangRequest,
    Instance,
    NodeClass,
    RoundPlan,
)

SINGLES = 40
"""Most nodes that are bins of their own; those on which greedy mixes jobs always are."""
MANY = 1 << 20


@dataclass(frozen=True, slots=True)
class NodeBundle:
    """One node, or a bundle of nodes of one class."""

    cls: int
    nodes: tuple[FreeNode, ...]
    is_single: bool

    @property
    def count(self) -> int:
        return len(self.nodes)


def workers_now(cls: NodeClass, request: GangRequest) -> int:
    """Return how many workers one node of the class takes now, up to what the job can use."""
    if request.is_share:
        by_gpu = cls.whole * (GPU // request.milli) + sum(m // request.milli for m in cls.partial)
    else:
        by_gpu = cls.whole // request.gpus if request.gpus else MANY
    return min(request.max_workers, limit_workers(by_gpu, request, cls.cpu_milli, cls.mem_mib))


def workers_later(cls: NodeClass, request: GangRequest) -> int:
    """Return how many workers one node takes once every victim on it has stopped."""
    whole = cls.whole + sum(share.whole for share in cls.victim_shares)
    cpu = cls.cpu_milli + sum(share.cpu_milli for share in cls.victim_shares)
    mem = cls.mem_mib + sum(share.mem_mib for share in cls.victim_shares)
    by_gpu = whole // request.gpus if request.gpus else MANY
    return min(request.max_workers, limit_workers(by_gpu, request, cpu, mem))


def layout(instance: Instance, plan: RoundPlan, singles: int = SINGLES) -> list[NodeBundle]:
    """Return places for all nodes of the instance, such that they can express the plan."""
    used = usage(plan)
    total = sum(len(cls.nodes) for cls in instance.classes)
    per_class = max(1, singles // max(1, len(instance.classes)))
    places_of_all: list[NodeBundle] = []
    for index, cls in enumerate(instance.classes):
        most = len(cls.nodes) if total <= singles else min(per_class, singles)
        places = split(instance, index, used, most)
        singles -= sum(place.is_single for place in places) if total > singles else 0
        places_of_all += places
    return places_of_all


def split(instance: Instance, index: int, used: Usage, most: int) -> list[NodeBundle]:
    """Return single nodes, those of which the plan takes most GPUs first; then a bundle.

    Besides the nodes that the plan mixes, single nodes are those it touches least.
    """
    cls = instance.classes[index]
    nodes = sorted(cls.nodes, key=lambda node: -whole_used(used.get(node.node_id), node))
    mixed = {n.node_id for n in nodes if is_mixed(instance, cls, used.get(n.node_id))}
    unmixed = [node for node in nodes if node.node_id not in mixed]
    bundled = unmixed[: max(0, len(unmixed) - max(0, most - len(mixed)))]
    in_bundle = {node.node_id for node in bundled}
    places = [NodeBundle(index, (node,), True) for node in nodes if node.node_id not in in_bundle]
    return [*places, NodeBundle(index, tuple(bundled), False)] if bundled else places


@dataclass(slots=True)
class NodeUsage:
    """The use of one node by a plan."""

    workers: Counter[int] = field(default_factory=Counter)
    """By request; a victim that migrates here counts as -1 - victim, a reservation as `MANY` +
    request."""
    gpus: set[int] = field(default_factory=set)


Usage = dict[str, NodeUsage]


def usage(plan: RoundPlan) -> Usage:
    """Return what the plan uses of each node, by node id."""
    nodes: Usage = {}
    taken = [(start.request, start.slots) for start in plan.starts]
    taken += [(-1 - migration.victim, migration.slots) for migration in plan.migrations]
    for number, slots in taken:
        for slot in slots:
            use = nodes.setdefault(slot.node_id, NodeUsage())
            use.workers[number] += 1
            use.gpus.update(slot.gpus)
    for reservation in plan.reservations:
        for name, count in reservation.workers:
            nodes.setdefault(name, NodeUsage()).workers[MANY + reservation.request] += count
    return nodes


def is_mixed(instance: Instance, cls: NodeClass, use: NodeUsage | None) -> bool:
    """Return whether a bundle cannot express the use of this node."""
    if use is None:
        return False
    if len(use.workers) > 1:
        return True
    ((number, workers),) = use.workers.items()
    if not 0 <= number < MANY:
        return True
    request = instance.requests[number]
    return request.is_share or not request.gpus or workers != workers_now(cls, request)


def whole_used(use: NodeUsage | None, node: FreeNode) -> int:
    """Return the whole GPUs that the plan takes of this node: an order among equal nodes."""
    return sum(node.free[gpu] == GPU for gpu in use.gpus) if use else 0


def bins_of(cls: NodeClass, whole: int) -> list[int]:
    """Return the free thousandths of GPUs that shares may use: partly used, then whole ones."""
    return [*cls.partial, *([GPU] * min(whole, cls.whole))]


def gpus_of(node: FreeNode) -> list[int]:
    """Return the node's GPUs in the order of `bins_of`."""
    partly = node.healthy_first(gpu for gpu, milli in enumerate(node.free) if 0 < milli < GPU)
    return sorted(partly, key=lambda gpu: node.free[gpu]) + whole_gpus(node)


def whole_gpus(node: FreeNode) -> list[int]:
    """Return the node's wholly free GPUs in the order in which they are given."""
    return node.healthy_first(gpu for gpu, milli in enumerate(node.free) if milli == GPU)
