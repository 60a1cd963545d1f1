"""Solves an instance and returns the better of two plans: the solver's and greedy's."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ortools.sat.python import cp_model

from services.placement.core.pool.shape import Slot
from services.placement.core.solver.checker import find_violations
from services.placement.core.solver.hint import Hint
from services.placement.core.solver.instance import (
    FreeNode,
    GangRequest,
    Instance,
    Reservation,
    RoundPlan,
    Solution,
    Start,
    VictimMigration,
    Wait,
)
from services.placement.core.solver.model import RoundModel
from services.placement.core.solver.objective import score
from services.placement.core.solver.places import gpus_of, layout, whole_gpus
from services.placement.core.solver.variables import GangVariables

SEED = 4242
ROUNDING = 0.01
"""The bound is a whole number that comes as a float."""
STATUS = {cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "feasible"}


def solve(instance: Instance, deterministic_limit: float, wall_s: float | None = None) -> Solution:
    """Solve the instance: equal bytes lead to the same plan unless `wall_s` (live only) ends it.

    `deterministic_limit` is in the solver's own units of work, about a second each. In a simulation
    this is called at once, see `contended.solve_now`.
    """
    greedy = score(instance, instance.greedy).total
    model = RoundModel(instance, layout(instance, instance.greedy))
    Hint(model).give(instance.greedy)
    solver = cp_model.CpSolver()
    limit(solver, deterministic_limit, wall_s)
    status = solver.solve(model.cp)
    exact = all(place.is_single for place in model.places)
    if status not in STATUS:
        return greedy_solution(instance, "kept_greedy", greedy, greedy, exact)
    plan = read(instance, model, solver)
    bound = math.floor(solver.best_objective_bound + ROUNDING)
    if find_violations(instance, plan):
        return greedy_solution(instance, "refused", greedy, bound, exact)
    value = score(instance, plan)
    if value.total <= greedy:
        return greedy_solution(instance, "kept_greedy", greedy, max(bound, greedy), exact)
    return Solution(plan, STATUS[status], value.total, greedy, bound, value.terms, exact)


def limit(solver: cp_model.CpSolver, deterministic: float, wall_s: float | None) -> None:
    """Set the limits, a full linear relaxation and a short presolve.

    So an optimum of rounds with 1,250 nodes is proven in a fifth of a second; with the defaults
    nothing better than greedy comes in four times as long.
    """
    parameters = solver.parameters
    parameters.num_workers = 1
    parameters.random_seed = SEED
    parameters.linearization_level = 2
    parameters.symmetry_level = 0
    parameters.cp_model_probing_level = 0
    parameters.max_presolve_iterations = 1
    parameters.max_deterministic_time = deterministic
    if wall_s is not None:
        parameters.max_time_in_seconds = wall_s


def greedy_solution(
    instance: Instance, status: str, greedy: int, bound: int, exact: bool
) -> Solution:
    value = score(instance, instance.greedy)
    return Solution(instance.greedy, status, greedy, greedy, bound, value.terms, exact)


def read(instance: Instance, model: RoundModel, solver: cp_model.CpSolver) -> RoundPlan:
    """Return the plan in the solver's numbers; of a node's GPUs the healthiest first."""
    return SolutionReader(instance, model, solver).plan()


class SolutionReader:
    """Translates the solver's numbers to slots; nodes and GPUs are taken in a fixed order."""

    def __init__(self, instance: Instance, model: RoundModel, solver: cp_model.CpSolver) -> None:
        self.instance = instance
        self.model = model
        self.solver = solver
        self.bundles = {
            number: iter(place.nodes)
            for number, place in enumerate(model.places)
            if not place.is_single
        }
        self.whole: dict[str, list[int]] = {}
        self.opened: dict[tuple[int, int], int] = {}

    def plan(self) -> RoundPlan:
        model = self.model
        self.open_shares()
        starts = [
            Start(index, tuple(self.slots(gang)))
            for index, gang in enumerate(model.gangs)
            if self.begins(gang)
        ]
        migrations = [
            VictimMigration(victim, tuple(self.slots(gang)))
            for victim, gang in enumerate(model.migrants)
            if self.begins(gang)
        ]
        reservations = [
            Reservation(index, tuple(self.later(gang)))
            for index, gang in model.reservations.items()
            if self.begins(gang)
        ]
        stops = tuple(v for v, stop in enumerate(model.stops) if self.solver.value(stop))
        waits = tuple(Wait(*key) for key, var in model.waits.items() if self.solver.value(var))
        return RoundPlan(tuple(starts), tuple(reservations), stops, tuple(migrations), waits)

    def begins(self, gang: GangVariables) -> bool:
        return bool(gang.workers) and bool(self.solver.value(gang.begins))

    def open_shares(self) -> None:
        """Assign a GPU to every bin that a share opens, before whole GPUs are taken."""
        for number, at in self.model.shares:
            partly = len(self.model.cls(number).partial)
            taken = self.model.shares[number, at]
            if at >= partly and any(self.solver.value(var) for var, _ in taken):
                self.opened[number, at] = self.free_whole(self.node(number)).pop(0)

    def node(self, number: int) -> FreeNode:
        return self.model.places[number].nodes[0]

    def free_whole(self, node: FreeNode) -> list[int]:
        if node.node_id not in self.whole:
            self.whole[node.node_id] = whole_gpus(node)
        return self.whole[node.node_id]

    def slots(self, gang: GangVariables) -> Iterator[Slot]:
        if gang.request.is_share:
            yield from self.share_slots(gang)
            return
        for number, var in gang.workers.items():
            units = int(self.solver.value(var))
            if self.model.places[number].is_single:
                yield from self.take(gang.request, self.node(number), units)
                continue
            for _ in range(units):
                yield from self.take(gang.request, next(self.bundles[number]), gang.per[number])

    def take(self, request: GangRequest, node: FreeNode, workers: int) -> Iterator[Slot]:
        free = self.free_whole(node)
        for _ in range(workers):
            gpus, free[: request.gpus] = tuple(free[: request.gpus]), []
            yield slot(request, node, gpus)

    def share_slots(self, gang: GangVariables) -> Iterator[Slot]:
        for (number, at), var in gang.bins.items():
            node = self.node(number)
            for _ in range(int(self.solver.value(var))):
                key = (number, at)
                gpu = self.opened[key] if key in self.opened else gpus_of(node)[at]
                yield slot(gang.request, node, (gpu,))

    def later(self, gang: GangVariables) -> Iterator[tuple[str, int]]:
        for number, var in gang.workers.items():
            units = int(self.solver.value(var))
            if self.model.places[number].is_single:
                if units:
                    yield self.node(number).node_id, units
                continue
            for _ in range(units):
                yield next(self.bundles[number]).node_id, gang.per[number]


def slot(request: GangRequest, node: FreeNode, gpus: tuple[int, ...]) -> Slot:
    return Slot(node.node_id, gpus, request.milli, request.cpu_milli, request.mem_mib)
