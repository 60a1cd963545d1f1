"""RLTune's placement of the same jobs by HiGHS: one small MILP per job, in the order of the queue.

RLTune's publication: at most four candidates per job (least nodes, or one more that leaves no new
fragment; each by fragments or by balance), one of which the MILP picks; its fragmentation term in
the intended form, since the released one has no effect.

`python -m benchmarks.parts.placement.rltune` reads instances on stdin and writes plans: OR-tools
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
CANDIDATES_LIMIT = 400
"""Candidates of a job among which the best four are searched."""

Candidate = tuple[str, ...]
"""A node per worker, sorted."""


@dataclass(slots=True)
class FreeNodes:
    """Wholly free GPUs of each node, updated as jobs are placed."""

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

    def fits(self, request: GangRequest, name: str, workers: int) -> bool:
        return (
            len(self.free[name]) >= request.gpus * workers
            and self.cpu[name] >= request.cpu_milli * workers
            and self.mem[name] >= request.mem_mib * workers
        )

    def take(self, request: GangRequest, candidate: Candidate) -> tuple[Slot, ...]:
        slots = []
        for name in candidate:
            gpus, self.free[name] = self.free[name][: request.gpus], self.free[name][request.gpus :]
            self.cpu[name] -= request.cpu_milli
            self.mem[name] -= request.mem_mib
            slots.append(Slot(name, tuple(gpus), request.milli, request.cpu_milli, request.mem_mib))
        return tuple(slots)

    def remaining(self, request: GangRequest, candidate: Candidate) -> dict[str, int]:
        """Return the wholly free GPUs of every node after the candidate was taken."""
        used = Counter(candidate)
        return {name: len(free) - used[name] * request.gpus for name, free in self.free.items()}


def rltune(instance: Instance) -> RoundPlan:
    """Return RLTune's plan.

    Shares and jobs without GPUs, which RLTune does not support, stay as greedy has them.
    """
    nodes, classes = FreeNodes(instance), class_of(instance)
    greedy = {start.request: start for start in instance.greedy.starts}
    starts = []
    for index, request in enumerate(instance.requests):
        if request.is_share or not request.gpus or request.victims:
            starts += [greedy[index]] if index in greedy else []
            continue
        if choices := best_candidates(nodes, request, classes):
            chosen = choices[0] if len(choices) == 1 else choices[milp(nodes, request, choices)]
            starts.append(Start(index, nodes.take(request, chosen)))
    plan = RoundPlan(tuple(starts))
    return instance.greedy if find_violations(instance, plan) else plan


def best_candidates(
    nodes: FreeNodes, request: GangRequest, classes: dict[str, int]
) -> list[Candidate]:
    """Return the best candidates of each tier by fragments and by balance, without repeats."""
    candidates = list(all_candidates(nodes, request, classes))
    if not candidates:
        return []
    least = min(len(set(candidate)) for candidate in candidates)
    before = fragments(nodes, {name: len(free) for name, free in nodes.free.items()})
    remaining = {candidate: nodes.remaining(request, candidate) for candidate in candidates}
    first = [candidate for candidate in candidates if len(set(candidate)) == least]
    second = [
        candidate
        for candidate in candidates
        if len(set(candidate)) == least + 1 and fragments(nodes, remaining[candidate]) <= before
    ]
    best: list[Candidate] = []
    for tier in (first, second):
        if tier:
            best.append(min(tier, key=lambda c: (fragments(nodes, remaining[c]), c)))
            best.append(min(tier, key=lambda c: (variance(remaining[c]), c)))
    return list(dict.fromkeys(best))


def all_candidates(
    nodes: FreeNodes, request: GangRequest, classes: dict[str, int]
) -> Iterator[Candidate]:
    """Yield candidates; of nodes with equal free GPUs only the first by name are used."""
    groups: dict[tuple[int, int], list[str]] = {}
    for name, cls in classes.items():
        if cls in request.classes and nodes.fits(request, name, 1):
            groups.setdefault((cls, len(nodes.free[name])), []).append(name)
    names = [name for group in groups.values() for name in sorted(group)[: request.min_workers]]
    combinations = combinations_with_replacement(sorted(names), request.min_workers)
    for candidate in islice(combinations, CANDIDATES_LIMIT):
        if all(nodes.fits(request, name, count) for name, count in Counter(candidate).items()):
            yield candidate


def fragments(nodes: FreeNodes, remaining: dict[str, int]) -> int:
    """Return the number of nodes that are partly free."""
    return sum(0 < free < nodes.gpus[name] for name, free in remaining.items())


def variance(remaining: dict[str, int]) -> float:
    mean = sum(remaining.values()) / len(remaining)
    return sum((free - mean) ** 2 for free in remaining.values())


def milp(nodes: FreeNodes, request: GangRequest, candidates: list[Candidate]) -> int:
    """Return the index of the best candidate.

    Minimises alpha * fragments + beta * (most - least free) - gamma * nodes with room.
    """
    import highspy  # not in the process of the caller, see the module's docstring

    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    model.silent()
    remaining = [nodes.remaining(request, candidate) for candidate in candidates]
    names = sorted(nodes.free)
    pick = [model.addBinary() for _ in candidates]
    most, least = model.addVariable(0, GPU), model.addVariable(0, GPU)
    need = nodes.instance.next_worker.gpus
    cost = BETA * most - BETA * least
    model.addConstr(sum(pick) == 1)
    if nodes.instance.full_nodes:
        model.addConstr(least <= 0)
    for name in names:
        free = sum(left[name] * x for left, x in zip(remaining, pick, strict=True))
        model.addConstr(most >= free)
        model.addConstr(least <= free)
        gpus = nodes.gpus[name]
        partly = sum(
            int(0 < left[name] < gpus) * x for left, x in zip(remaining, pick, strict=True)
        )
        cost = cost + ALPHA * partly
        if need:
            has_room = model.addBinary()
            model.addConstr(free >= need * has_room)
            cost = cost - GAMMA * has_room
    model.minimize(cost)
    values = [model.val(x) for x in pick]
    return max(range(len(candidates)), key=values.__getitem__)


class RltuneResult(NamedTuple):
    """RLTune's plan of one instance, and its CPU time in ms."""

    plan: RoundPlan
    cpu_ms: float


def solve_in_process(instances: Sequence[Instance]) -> list[RltuneResult]:
    """Return the plans of these instances, computed in another process."""
    program = [sys.executable, "-m", __name__]
    data = msgspec.msgpack.encode(list(instances))
    output = subprocess.run(program, input=data, stdout=subprocess.PIPE, check=True).stdout
    return msgspec.msgpack.decode(output, type=list[RltuneResult])


def main() -> None:
    instances = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Instance])
    results = []
    for instance in instances:
        began_s = time.process_time()
        plan = rltune(instance)
        results.append(RltuneResult(plan, (time.process_time() - began_s) * 1000))
    sys.stdout.buffer.write(msgspec.msgpack.encode(results))


if __name__ == "__main__":
    main()
