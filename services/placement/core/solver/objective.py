"""The value of a plan of a contended round: one pure function, for greedy's plan and any other.

The value of starting a job is its GPUs times a weight that halves every eight places in the queue
and falls 32-fold from one class to the next; the weight stands for the inverse of the job's
GPU-seconds, by which a knapsack of waiting jobs is filled in shortest-area-first order. So two
jobs eight places back outweigh one of the same size, and nothing less does. On top of it the
first job of the queue that fits is started by every plan: the head is not passed over.

A gang runs at the speed of its slowest node: throughput of the GPU type (as in Gavel, OSDI '20,
and Sia, SOSP '23) times health, and times what its links leave of it where the job declares that.
Where it does not, racks and nodes beyond the first cost at most 1/16 and 1/32 of the job's value.
Fragmentation, balance and room weigh 1.0, 0.3 and 0.5 as in RLTune's placement
(SoCC '25), whose term of fragmentation has no effect as published and has one here; together they
are small beside a job.
Stopping a running job costs its lost work and restart per GPU; a job of a lower class never
costs so much that a higher one would wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.instance import (
    GangRequest,
    Instance,
    NodeClass,
    RoundPlan,
    Start,
    Wait,
)

HEAD = 1 << 20
"""Value of one GPU for the first in the queue."""
LEAST = 1 << 12
"""Value of one GPU for the last."""
HALVES_EVERY = 8
CLASS_GAP = 5 * HALVES_EVERY
NO_GPU_MILLI = 125
"""A worker without GPUs counts as an eighth of one."""
FRAGMENT, BALANCE, ROOM = 100, 30, 50
RACK_SHARE, NODE_SHARE = 16, 32
STOP, MIGRATION = 1 << 14, 1 << 12
"""Price of one GPU of a job that stops, or migrates, whatever it loses."""
LOST_HOUR = 1 << 18
"""Price of an hour of one GPU's work."""
LOST_MOST = 1 << 20
_STEPS = tuple(round(HEAD * 2 ** (-step / HALVES_EVERY)) for step in range(HALVES_EVERY))


def weight(place: int) -> int:
    """Return the value of one GPU for the job at that place, 0 first."""
    return max(LEAST, _STEPS[place % HALVES_EVERY] >> place // HALVES_EVERY)


def size_milli(gpus: int, milli: int) -> int:
    """Return the size of one worker, in thousandths of a GPU."""
    return max(gpus * milli, NO_GPU_MILLI)


def stop_price(gpus_milli: int, lost_s: float) -> int:
    """Return the price of the cluster seconds that a job of that size loses, with its restart."""
    return gpus_milli * min(round(LOST_HOUR * lost_s / 3600), LOST_MOST) // GPU


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a plan: `total` is the sum of `terms`; higher is better."""

    total: int
    terms: dict[str, int]


@dataclass(frozen=True, slots=True)
class NodeRemainder:
    """The rest of a node after the starts of a plan."""

    gpus: int
    whole: int
    opened: int
    cpu_milli: int
    mem_mib: int


def score(instance: Instance, plan: RoundPlan) -> Score:
    """Return the value of a plan without violations (`checker.find_violations`)."""
    where = class_of(instance)
    terms = {
        "value": sum(start_value(instance, start, where) for start in plan.starts)
        + sum(instance.requests[reservation.request].value for reservation in plan.reservations)
        + sum(wait_value(instance, wait) for wait in plan.waits),
        "racks": -sum(rack_cost(instance, start, where) for start in plan.starts),
        "nodes": -sum(
            node_cost(instance.requests[s.request], nodes_of(s.slots)) for s in plan.starts
        ),
        "lost_work": -stops_cost(instance, plan),
        **tidiness(instance, plan, where),
    }
    return Score(sum(terms.values()), terms)


def class_of(instance: Instance) -> dict[str, int]:
    """Return the index of the class by node id."""
    return {node.node_id: index for index, cls in enumerate(instance.classes) for node in cls.nodes}


def nodes_of(slots: tuple[Slot, ...]) -> int:
    return len({slot.node_id for slot in slots})


def start_value(instance: Instance, start: Start, where: Mapping[str, int]) -> int:
    """Return the value of a start, with that of its workers beyond the least."""
    request = instance.requests[start.request]
    extra = request.extra * (len(start.slots) - request.min_workers)
    return at_speed(request.value, speed_of(instance, request, start.slots, where)) + extra


def wait_value(instance: Instance, wait: Wait) -> int:
    """Return the value of a wait: that of a start now which would be over at the same time."""
    request = instance.requests[wait.request]
    return at_speed(request.value, dict(request.waits)[wait.release])


def at_speed(value: int, speed: int) -> int:
    return value * speed // GPU


def speed_of(
    instance: Instance, request: GangRequest, slots: tuple[Slot, ...], where: Mapping[str, int]
) -> int:
    """Return thousandths of full speed: that of the slowest node, over the gang's links."""
    speeds = dict(zip(request.classes, request.speeds, strict=True))
    slowest = min(speeds[where[slot.node_id]] for slot in slots)
    return linked(slowest, link_speed(request, tier_of(instance, slots, where)))


def tier_of(instance: Instance, slots: tuple[Slot, ...], where: Mapping[str, int]) -> int:
    """Return 0 for a gang on one node, 1 for one in one rack, 2 for one over racks."""
    if nodes_of(slots) <= 1:
        return 0
    return 1 if len({instance.classes[where[slot.node_id]].rack for slot in slots}) == 1 else 2


def link_speed(request: GangRequest, tier: int) -> int:
    """Return the thousandths of its speed that a gang has on a tier (`tier_of`)."""
    return GPU if request.spread is None else (GPU, *request.spread)[tier]


def linked(speed: int, link: int) -> int:
    """Return thousandths of full speed, given those by the nodes and those by the links."""
    return speed * link // GPU


def racks_of(instance: Instance, request: GangRequest) -> int:
    """Return the number of racks that the gang could be spread over."""
    return len({instance.classes[index].rack for index in request.classes})


def rack_unit(instance: Instance, request: GangRequest) -> int:
    """Return the cost of each rack beyond the first; its speed has it where that is known."""
    if request.spread is not None:
        return 0
    return request.value // (RACK_SHARE * max(1, racks_of(instance, request)))


def rack_cost(instance: Instance, start: Start, where: Mapping[str, int]) -> int:
    used = {instance.classes[where[slot.node_id]].rack for slot in start.slots}
    return rack_unit(instance, instance.requests[start.request]) * (len(used) - 1)


def node_unit(request: GangRequest) -> int:
    """Return the cost of each node beyond the first; its speed has it where that is known."""
    if request.spread is not None:
        return 0
    return request.value // (NODE_SHARE * request.max_workers)


def node_cost(request: GangRequest, nodes: int) -> int:
    return node_unit(request) * (nodes - 1)


def stops_cost(instance: Instance, plan: RoundPlan) -> int:
    moved = {migration.victim for migration in plan.migrations}
    return sum(
        instance.victims[index].migration_price if index in moved else instance.victims[index].price
        for index in plan.stops
    )


def tidiness(instance: Instance, plan: RoundPlan, where: Mapping[str, int]) -> dict[str, int]:
    touched: dict[str, list[Slot]] = {}
    taken = [start.slots for start in plan.starts] + [
        migration.slots for migration in plan.migrations
    ]
    for slot in (slot for slots in taken for slot in slots):
        touched.setdefault(slot.node_id, []).append(slot)
    lefts = [
        (left_of(instance.classes[where[name]], node_free(instance, name, where), slots), 1)
        for name, slots in touched.items()
    ]
    lefts += untouched_nodes(instance, touched, where)
    whole = [left.whole for left, count in lefts if count]
    if instance.full_nodes:
        whole.append(0)
    return {
        "fragmentation": -sum(fragments(left) * count for left, count in lefts),
        "balance": -BALANCE * (max(whole) - min(whole)) if whole else 0,
        "room": sum(room(instance, left) * count for left, count in lefts),
    }


def untouched_nodes(
    instance: Instance, touched: Mapping[str, list[Slot]], where: Mapping[str, int]
) -> list[tuple[NodeRemainder, int]]:
    counts = [len(cls.nodes) for cls in instance.classes]
    for name in touched:
        counts[where[name]] -= 1
    return [
        (NodeRemainder(cls.gpus, cls.whole, 0, cls.cpu_milli, cls.mem_mib), count)
        for cls, count in zip(instance.classes, counts, strict=True)
    ]


def node_free(instance: Instance, name: str, where: Mapping[str, int]) -> tuple[int, ...]:
    nodes = instance.classes[where[name]].nodes
    return next(node.free for node in nodes if node.node_id == name)


def left_of(cls: NodeClass, free: tuple[int, ...], slots: list[Slot]) -> NodeRemainder:
    used = {gpu for slot in slots for gpu in slot.gpus if free[gpu] == GPU}
    opened = {gpu for slot in slots if slot.milli < GPU for gpu in slot.gpus if free[gpu] == GPU}
    return NodeRemainder(
        cls.gpus,
        cls.whole - len(used),
        len(opened),
        cls.cpu_milli - sum(slot.cpu_milli for slot in slots),
        cls.mem_mib - sum(slot.mem_mib for slot in slots),
    )


def fragments(left: NodeRemainder) -> int:
    """Return the cost of a partly used node, and of each GPU that a share has opened."""
    return FRAGMENT * ((0 < left.whole < left.gpus) + left.opened)


def room(instance: Instance, left: NodeRemainder) -> int:
    """Return the bonus of a node on which the next job's worker fits."""
    need = instance.next_worker
    fits = left.whole >= need.gpus and left.cpu_milli >= need.cpu_milli
    return ROOM if need.gpus and fits and left.mem_mib >= need.mem_mib else 0
