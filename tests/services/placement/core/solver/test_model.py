from __future__ import annotations

from ortools.sat.python import cp_model

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.hint import Hint
from services.placement.core.solver.instance import (
    FreeNode,
    GangRequest,
    Instance,
    NodeClass,
    RoundPlan,
)
from services.placement.core.solver.model import RoundModel
from services.placement.core.solver.places import layout
from services.placement.core.solver.variables import need_of, total


def instance(*gpus: int, must_start: bool = False) -> Instance:
    node = NodeClass(4, 4, (), 0, 0, 0, (FreeNode("n", (GPU,) * 4),))
    requests = tuple(
        GangRequest(f"j{n}", 1, count, GPU, 0, 0, 1, 1, (0,), (GPU,), n, 10_000 * count)
        for n, count in enumerate(gpus)
    )
    return Instance((node,), requests)


def started(given: Instance) -> list[bool]:
    model = RoundModel(given, layout(given, given.greedy))
    Hint(model).give(RoundPlan())
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    return [bool(solver.value(gang.begins)) for gang in model.gangs]


def test_the_node_is_filled_by_the_most_valuable_jobs() -> None:
    assert started(instance(3, 2, 2)) == [False, True, True]


def test_a_gang_that_fits_on_no_node_does_not_start() -> None:
    assert started(instance(8)) == [False]


def test_an_empty_sum_is_zero() -> None:
    assert total([]) == 0
    assert need_of(instance(3).requests[0]) == (3, GPU, 0, 0)
