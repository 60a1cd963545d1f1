"""The check of a plan against its instance: independent of the model, GPU by GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.instance import (
    GangRequest,
    Instance,
    RoundPlan,
    Start,
    VictimMigration,
)


def find_violations(instance: Instance, plan: RoundPlan) -> list[str]:
    """Return the violations of a plan; empty if it keeps all rules."""
    return [
        *check_requests(instance, plan),
        *check_slots(instance, plan),
        *check_capacity(instance, plan),
        *check_waits(instance, plan),
    ]


def check_requests(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    requests = [start.request for start in plan.starts] + [
        reservation.request for reservation in plan.reservations
    ]
    requests += [wait.request for wait in plan.waits]
    yield from (
        f"request {request} is served twice" for request, n in Counter(requests).items() if n > 1
    )
    begun = {start.request for start in plan.starts} | {wait.request for wait in plan.waits}
    for index, request in enumerate(instance.requests):
        if request.must_start and index not in begun:
            yield f"request {index} is first in the queue and does not start"
    yield from check_stops(instance, plan)


def check_stops(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    entitled = {
        victim
        for reservation in plan.reservations
        for victim in instance.requests[reservation.request].victims
    }
    for victim in plan.stops:
        if victim not in entitled:
            yield f"victim {victim} stops for no job that may stop it"
    if len(set(plan.stops)) < len(plan.stops):
        yield "a victim stops twice"
    moved = [migration.victim for migration in plan.migrations]
    if not set(moved) <= set(plan.stops) or len(set(moved)) < len(moved):
        yield "a victim moves twice, or without stopping"


def check_waits(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    left = [release.gpus for release in instance.releases]
    for wait in plan.waits:
        request = instance.requests[wait.request]
        if wait.release not in dict(request.waits):
            yield f"{request.job_id} may not wait for release {wait.release}"
            continue
        left[wait.release] -= request.gpus
        if left[wait.release] < 0:
            yield f"release {wait.release} has not so much"


def check_slots(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    for start in plan.starts:
        yield from check_gang(instance, instance.requests[start.request], start.slots)
    for migration in plan.migrations:
        yield from check_gang(instance, instance.victims[migration.victim].request, migration.slots)
    for reservation in plan.reservations:
        request = instance.requests[reservation.request]
        allowed = allowed_nodes(instance, request)
        if sum(count for _, count in reservation.workers) != request.min_workers:
            yield f"{request.job_id} claims another number of workers than its least"
        if any(name not in allowed for name, _ in reservation.workers):
            yield f"{request.job_id} claims a node where it may not run"


def allowed_nodes(instance: Instance, request: GangRequest) -> set[str]:
    return {node.node_id for index in request.classes for node in instance.classes[index].nodes}


def check_gang(instance: Instance, request: GangRequest, slots: tuple[Slot, ...]) -> Iterator[str]:
    if not request.min_workers <= len(slots) <= request.max_workers:
        yield f"{request.job_id} has {len(slots)} workers"
    allowed = allowed_nodes(instance, request)
    need = (request.milli, request.cpu_milli, request.mem_mib)
    for slot in slots:
        if slot.node_id not in allowed:
            yield f"{request.job_id} may not run on {slot.node_id}"
        if len(set(slot.gpus)) != request.gpus or slot[2:] != need:
            yield f"{request.job_id} requests another worker"


def check_capacity(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    taken: list[Start | VictimMigration] = [*plan.starts, *plan.migrations]
    used: dict[str, list[Slot]] = {}
    for slot in (slot for part in taken for slot in part.slots):
        used.setdefault(slot.node_id, []).append(slot)
    reserved: dict[str, list[tuple[GangRequest, int]]] = {}
    for reservation in plan.reservations:
        for name, count in reservation.workers:
            reserved.setdefault(name, []).append((instance.requests[reservation.request], count))
    for cls in instance.classes:
        back = [share for share in cls.victim_shares if share.victim in plan.stops]
        for node in cls.nodes:
            slots = used.get(node.node_id, [])
            free = remaining(node.free, slots)
            cpu = cls.cpu_milli - sum(slot.cpu_milli for slot in slots)
            mem = cls.mem_mib - sum(slot.mem_mib for slot in slots)
            if min(free, default=0) < 0 or cpu < 0 or mem < 0:
                yield f"{node.node_id} has not so much"
            later = reserved.get(node.node_id, [])
            whole = sum(left == GPU for left in free) + sum(share.whole for share in back)
            cpu += sum(share.cpu_milli for share in back)
            mem += sum(share.mem_mib for share in back)
            if later and not fits(later, whole, cpu, mem):
                yield f"{node.node_id} will not have so much"


def remaining(free: tuple[int, ...], slots: Iterable[Slot]) -> list[int]:
    left = list(free)
    for slot in slots:
        for gpu in slot.gpus:
            left[gpu] -= slot.milli
    return left


def fits(later: list[tuple[GangRequest, int]], whole: int, cpu: int, mem: int) -> bool:
    return (
        sum(request.gpus * count for request, count in later) <= whole
        and sum(request.cpu_milli * count for request, count in later) <= cpu
        and sum(request.mem_mib * count for request, count in later) <= mem
    )
