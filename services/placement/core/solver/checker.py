"""Whether a plan keeps the rules: written without the model, node by node and GPU by GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.instance import Instance, Move, RoundPlan, Start, Wish


def faults(instance: Instance, plan: RoundPlan) -> list[str]:
    """What is wrong with the plan; empty: nothing."""
    return [*who(instance, plan), *where(instance, plan), *capacity(instance, plan)]


def who(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    wishes = [start.wish for start in plan.starts] + [claim.wish for claim in plan.claims]
    yield from (f"wish {wish} is served twice" for wish, n in Counter(wishes).items() if n > 1)
    begun = {start.wish for start in plan.starts}
    for index, wish in enumerate(instance.wishes):
        if wish.must and index not in begun:
            yield f"wish {index} is first in line and does not start"
    yield from stops(instance, plan)


def stops(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    entitled = {victim for claim in plan.claims for victim in instance.wishes[claim.wish].victims}
    for victim in plan.stops:
        if victim not in entitled:
            yield f"victim {victim} stops for nobody who may ask for it"
    if len(set(plan.stops)) < len(plan.stops):
        yield "a victim stops twice"
    moved = [move.victim for move in plan.moves]
    if not set(moved) <= set(plan.stops) or len(set(moved)) < len(moved):
        yield "a victim moves twice, or without stopping"


def where(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    for start in plan.starts:
        yield from gang(instance, instance.wishes[start.wish], start.slots)
    for move in plan.moves:
        yield from gang(instance, instance.victims[move.victim].wish, move.slots)
    for claim in plan.claims:
        wish = instance.wishes[claim.wish]
        allowed = homes(instance, wish)
        if sum(count for _, count in claim.workers) != wish.min_workers:
            yield f"{wish.job_id} claims another number of workers than its least"
        if any(name not in allowed for name, _ in claim.workers):
            yield f"{wish.job_id} claims a node where it may not run"


def homes(instance: Instance, wish: Wish) -> set[str]:
    return {node.node_id for index in wish.classes for node in instance.classes[index].nodes}


def gang(instance: Instance, wish: Wish, slots: tuple[Slot, ...]) -> Iterator[str]:
    if not wish.min_workers <= len(slots) <= wish.max_workers:
        yield f"{wish.job_id} has {len(slots)} workers"
    allowed = homes(instance, wish)
    need = (wish.milli, wish.cpu_milli, wish.mem_mib)
    for slot in slots:
        if slot.node_id not in allowed:
            yield f"{wish.job_id} may not run on {slot.node_id}"
        if len(set(slot.gpus)) != wish.gpus or slot[2:] != need:
            yield f"{wish.job_id} asked for another worker"


def capacity(instance: Instance, plan: RoundPlan) -> Iterator[str]:
    taken: list[Start | Move] = [*plan.starts, *plan.moves]
    used: dict[str, list[Slot]] = {}
    for slot in (slot for each in taken for slot in each.slots):
        used.setdefault(slot.node_id, []).append(slot)
    claimed: dict[str, list[tuple[Wish, int]]] = {}
    for claim in plan.claims:
        for name, count in claim.workers:
            claimed.setdefault(name, []).append((instance.wishes[claim.wish], count))
    for cls in instance.classes:
        back = [held for held in cls.held if held.victim in plan.stops]
        for node in cls.nodes:
            slots = used.get(node.node_id, [])
            free = remaining(node.free, slots)
            cpu = cls.cpu_milli - sum(slot.cpu_milli for slot in slots)
            mem = cls.mem_mib - sum(slot.mem_mib for slot in slots)
            if min(free, default=0) < 0 or cpu < 0 or mem < 0:
                yield f"{node.node_id} has not so much"
            later = claimed.get(node.node_id, [])
            whole = sum(left == GPU for left in free) + sum(held.whole for held in back)
            cpu += sum(held.cpu_milli for held in back)
            mem += sum(held.mem_mib for held in back)
            if later and not holds(later, whole, cpu, mem):
                yield f"{node.node_id} will not have so much"


def remaining(free: tuple[int, ...], slots: Iterable[Slot]) -> list[int]:
    left = list(free)
    for slot in slots:
        for gpu in slot.gpus:
            left[gpu] -= slot.milli
    return left


def holds(later: list[tuple[Wish, int]], whole: int, cpu: int, mem: int) -> bool:
    return (
        sum(wish.gpus * count for wish, count in later) <= whole
        and sum(wish.cpu_milli * count for wish, count in later) <= cpu
        and sum(wish.mem_mib * count for wish, count in later) <= mem
    )
