"""A plan from which the solver's search begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.instance import RoundPlan
from services.placement.core.solver.objective import tier_of
from services.placement.core.solver.places import gpus_of
from services.placement.core.solver.variables import GangVariables, Var, Variables


class Hint:
    """Expresses a plan in the variables of the model."""

    def __init__(self, model: Variables) -> None:
        self.model = model
        self.place_of = {
            node.node_id: number
            for number, place in enumerate(model.places)
            for node in place.nodes
        }
        self.values: dict[int, tuple[Var, int]] = {}
        self.opened: dict[int, dict[int, int]] = {}
        """Place -> GPU -> its bin, for GPUs that a share opens."""

    def give(self, plan: RoundPlan) -> None:
        model = self.model
        for gang in [*model.gangs, *model.reservations.values(), *model.migrants]:
            ways = gang.chosen.values()
            for var in [gang.begins, *gang.workers.values(), *gang.bins.values(), *ways]:
                self.set(var, 0)
        for start in plan.starts:
            self.begin(model.gangs[start.request], start.slots)
        for migration in plan.migrations:
            self.begin(model.migrants[migration.victim], migration.slots)
        for reservation in plan.reservations:
            self.set(model.reservations[reservation.request].begins, 1)
            self.count(model.reservations[reservation.request], reservation.workers)
        waits = {(wait.request, wait.release) for wait in plan.waits}
        for key, var in model.waits.items():
            self.set(var, int(key in waits))
        for victim, stop in enumerate(model.stops):
            self.set(stop, int(victim in plan.stops))
        for var, value in self.values.values():
            model.cp.add_hint(var, value)

    def set(self, var: Var, value: int) -> None:
        self.values[var.index] = (var, value)

    def begin(self, gang: GangVariables, slots: tuple[Slot, ...]) -> None:
        self.set(gang.begins, 1)
        if gang.chosen:
            self.set(gang.chosen[self.way(gang, slots)], 1)
        self.count(gang, Counter(slot.node_id for slot in slots).items())
        if gang.request.is_share:
            bins = Counter((number := self.place_of[s.node_id], self.bin(number, s)) for s in slots)
            for key, workers in bins.items():
                self.set(gang.bins[key], workers)

    def way(self, gang: GangVariables, slots: tuple[Slot, ...]) -> tuple[int, int]:
        """Return the speed by nodes, and the tier of links, at which the gang runs there."""
        instance, request = self.model.instance, gang.request
        where = {s.node_id: self.model.places[self.place_of[s.node_id]].cls for s in slots}
        speeds = dict(zip(request.classes, request.speeds, strict=True))
        tier = tier_of(instance, slots, where) if request.spread and request.max_workers > 1 else 0
        return min(speeds[cls] for cls in where.values()), tier

    def count(self, gang: GangVariables, workers: Iterable[tuple[str, int]]) -> None:
        by_place: Counter[int] = Counter()
        for name, many in workers:
            by_place[self.place_of[name]] += many
        for number, many in by_place.items():
            self.set(gang.workers[number], many // gang.per[number])

    def bin(self, number: int, slot: Slot) -> int:
        """GPUs that shares open are the bins after the partly used ones, in the plan's order."""
        (gpu,) = slot.gpus
        node, partly = self.model.places[number].nodes[0], len(self.model.cls(number).partial)
        if node.free[gpu] < GPU:
            return gpus_of(node).index(gpu)
        opened = self.opened.setdefault(number, {})
        return opened.setdefault(gpu, partly + len(opened))
