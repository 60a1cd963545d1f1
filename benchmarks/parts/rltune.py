"""RLTune's placement of the same jobs by HiGHS: one small MILP per job, in the order of the line.

Card rltune, section 4.4: at most four ways per job (least nodes, or one more that leaves no new
fragment; each by fragments or by balance), one of which the MILP picks; its fragmentation term
in the form that was meant, since the one that was released has no effect.

`python -m benchmarks.parts.rltune` reads instances on stdin and writes plans: OR-tools
has a HiGHS of its own, and the two libraries cannot be loaded into one process.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, islice
from typing import Any, NamedTuple

import msgspec

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.checker import find_violations
from services.placement.core.solver.instance import GangRequest, Instance, RoundPlan, Start
from services.placement.core.solver.objective import class_of

ALPHA, BETA, GAMMA = 1.0, 0.3, 0.5
GROUPS_MOST = 400
"""Ways of a job that are looked at for the best four."""

Way = tuple[str, ...]
"""A node per worker, sorted."""


@dataclass(slots=True)
class Nodes:
    """Wholly free GPUs by node, as jobs are placed."""

    instance: Instance
    free: dict[str, list[int]] = field(default_factory=dict)
    gpus: dict[str, int] = field(default_factory=dict)
    cpu: dict[str, int] = field(default_factory=dict)
    mem: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for cls in self.instance.classes:
            for node in cls.nodes:
                name = node.node_id
                self.free[name] = [g for g, milli in enumerate(node.free) if milli == GPU]
                self.gpus[name] = cls.gpus
                self.cpu[name], self.mem[name] = cls.cpu_milli, cls.mem_mib

    def holds(self, request: GangRequest, name: str, workers: int) -> bool:
        return (
            len(self.free[name]) >= request.gpus * workers
            and self.cpu[name] >= request.cpu_milli * workers
            and self.mem[name] >= request.mem_mib * workers
        )

    def take(self, request: GangRequest, way: Way) -> tuple[Slot, ...]:
        slots = []
        for name in way:
            gpus, self.free[name] = self.free[name][: request.gpus], self.free[name][request.gpus :]
            self.cpu[name] -= request.cpu_milli
            self.mem[name] -= request.mem_mib
            slots.append(Slot(name, tuple(gpus), request.milli, request.cpu_milli, request.mem_mib))
        return tuple(slots)

    def left(self, request: GangRequest, way: Way) -> dict[str, int]:
        """Wholly free GPUs of every node after it."""
        used = Counter(way)
        return {name: len(free) - used[name] * request.gpus for name, free in self.free.items()}


def rltune(instance: Instance) -> RoundPlan:
    """Its plan; shares and jobs without GPUs, which it does not know, stay as greedy has them."""
    nodes, where = Nodes(instance), class_of(instance)
    given = {start.request: start for start in instance.greedy.starts}
    starts = []
    for index, request in enumerate(instance.requests):
        if request.is_share or not request.gpus or request.victims:
            starts += [given[index]] if index in given else []
            continue
        found = ways(nodes, request, where)
        if found:
            chosen = found[0] if len(found) == 1 else found[milp(nodes, request, found)]
            starts.append(Start(index, nodes.take(request, chosen)))
    plan = RoundPlan(tuple(starts))
    return instance.greedy if find_violations(instance, plan) else plan


def ways(nodes: Nodes, request: GangRequest, where: dict[str, int]) -> list[Way]:
    """The best of each tier by fragments and by balance, without repeats."""
    found = list(every_way(nodes, request, where))
    if not found:
        return []
    least = min(len(set(way)) for way in found)
    before = fragments(nodes, {name: len(free) for name, free in nodes.free.items()})
    lefts = {way: nodes.left(request, way) for way in found}
    first = [way for way in found if len(set(way)) == least]
    second = [
        way
        for way in found
        if len(set(way)) == least + 1 and fragments(nodes, lefts[way]) <= before
    ]
    best: list[Way] = []
    for tier in (first, second):
        if tier:
            best.append(min(tier, key=lambda way: (fragments(nodes, lefts[way]), way)))
            best.append(min(tier, key=lambda way: (variance(lefts[way]), way)))
    return list(dict.fromkeys(best))


def every_way(nodes: Nodes, request: GangRequest, where: dict[str, int]) -> Iterator[Way]:
    """Nodes that are alike by their free GPUs count once: the first by name stands for them."""
    groups: dict[tuple[int, int], list[str]] = {}
    for name, cls in where.items():
        if cls in request.classes and nodes.holds(request, name, 1):
            groups.setdefault((cls, len(nodes.free[name])), []).append(name)
    names = [name for group in groups.values() for name in sorted(group)[: request.min_workers]]
    tried = combinations_with_replacement(sorted(names), request.min_workers)
    for way in islice(tried, GROUPS_MOST):
        if all(nodes.holds(request, name, many) for name, many in Counter(way).items()):
            yield way


def fragments(nodes: Nodes, left: dict[str, int]) -> int:
    return sum(0 < whole < nodes.gpus[name] for name, whole in left.items())


def variance(left: dict[str, int]) -> float:
    mean = sum(left.values()) / len(left)
    return sum((whole - mean) ** 2 for whole in left.values())


def milp(nodes: Nodes, request: GangRequest, found: list[Way]) -> int:
    """Which way: min alpha * fragments + beta * (most - least free) - gamma * nodes with room."""
    import highspy  # not in the process that asks, see above

    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    model.silent()
    lefts = [nodes.left(request, way) for way in found]
    names = sorted(nodes.free)
    pick = [model.addBinary() for _ in found]
    most, least = model.addVariable(0, GPU), model.addVariable(0, GPU)
    need = nodes.instance.next_worker.gpus
    cost = BETA * most - BETA * least
    model.addConstr(sum(pick) == 1)
    if nodes.instance.full_nodes:
        model.addConstr(least <= 0)
    for name in names:
        whole = sum(left[name] * x for left, x in zip(lefts, pick, strict=True))
        model.addConstr(most >= whole)
        model.addConstr(least <= whole)
        gpus = nodes.gpus[name]
        partly = sum(int(0 < left[name] < gpus) * x for left, x in zip(lefts, pick, strict=True))
        cost = cost + ALPHA * partly
        if need:
            hosts = model.addBinary()
            model.addConstr(whole >= need * hosts)
            cost = cost - GAMMA * hosts
    model.minimize(cost)
    values = [model.val(x) for x in pick]
    return max(range(len(found)), key=values.__getitem__)


class Placed(NamedTuple):
    """RLTune's plan of one instance, and the CPU ms that it took."""

    plan: RoundPlan
    cpu_ms: float


def elsewhere(instances: Sequence[Instance]) -> list[Placed]:
    """The plans of these instances, made in another process."""
    program = [sys.executable, "-m", __name__]
    given = msgspec.msgpack.encode(list(instances))
    made = subprocess.run(program, input=given, stdout=subprocess.PIPE, check=True).stdout
    return msgspec.msgpack.decode(made, type=list[Placed])


def main() -> None:
    instances = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Instance])
    placed = []
    for instance in instances:
        began_s = time.process_time()
        plan = rltune(instance)
        placed.append(Placed(plan, (time.process_time() - began_s) * 1000))
    sys.stdout.buffer.write(msgspec.msgpack.encode(placed))


if __name__ == "__main__":
    main()
