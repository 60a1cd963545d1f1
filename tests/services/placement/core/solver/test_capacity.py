"""Nodes carry what starts now, and with what victims give back also what is reserved."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.capacity import Capacity
from services.placement.core.solver.instance import (
    FreeNode,
    Instance,
    NextWorker,
    NodeClass,
    RoundPlan,
    VictimShare,
)
from services.placement.core.solver.objective import score
from services.placement.core.solver.places import NodeBundle
from services.placement.core.solver.variables import Variables, total

NO_WORKER = NextWorker()


def node_class(whole: int = 4, partial: tuple[int, ...] = (), victim: int = 0) -> NodeClass:
    free = (GPU,) * whole + partial + (0,) * (4 - whole - len(partial))
    shares = (VictimShare(0, victim, 0, 0),) if victim else ()
    return NodeClass(4, whole, partial, 4000, 0, 0, (FreeNode("n", free),), shares)


def variables(cls: NodeClass, next_worker: NextWorker = NO_WORKER) -> Variables:
    model = Variables(Instance((cls,), (), (), next_worker), [NodeBundle(0, cls.nodes, True)])
    model.stops = [model.bool()]
    return model


def largest(model: Variables, *terms: cp_model.LinearExprT) -> int:
    """Return the largest sum that the constraints allow."""
    Capacity(model)
    model.cp.maximize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    return round(solver.objective_value)


def test_a_node_carries_no_more_gpus_and_cores_than_are_free() -> None:
    model = variables(node_class(whole=3))
    one, two = model.upto(9), model.upto(9)
    model.now[0].gpus += [(one, 1), (two, 2)]
    assert largest(model, one, 2 * two) == 3
    model = variables(node_class())
    workers = model.upto(9)
    model.now[0].gpus.append((workers, 1))
    model.now[0].cpu.append((workers, 1500))
    assert largest(model, workers) == 2


@pytest.mark.parametrize(("stop", "gpus"), [(0, 1), (1, 3)])
def test_a_reservation_counts_what_a_stopped_victim_gives_back(stop: int, gpus: int) -> None:
    model = variables(node_class(whole=1, victim=2))
    reserved = model.upto(9)
    model.later[0].gpus.append((reserved, 1))
    model.cp.add(model.stops[0] == stop)
    assert largest(model, reserved) == gpus


def test_what_starts_now_is_not_reserved_as_well() -> None:
    model = variables(node_class(whole=1, victim=2))
    starts, reserved = model.upto(9), model.upto(9)
    model.now[0].gpus.append((starts, 1))
    model.later[0].gpus.append((reserved, 1))
    model.cp.add(model.stops[0] == 1)
    assert largest(model, 2 * starts, reserved) == 4, "one of the three starts now, two are kept"


def test_a_share_that_opens_a_gpu_takes_it_from_whole_workers() -> None:
    model = variables(node_class(whole=1, partial=(250,)))
    on_used, on_opened, whole = model.upto(9), model.upto(9), model.upto(9)
    model.shares = {(0, 0): [(on_used, 250)], (0, 1): [(on_opened, 250)]}
    model.now[0].gpus.append((whole, 1))
    assert largest(model, on_used, on_opened, 10 * whole) == 11
    assert len(model.now[0].opened) == 1


@pytest.mark.parametrize("used", range(5))
@pytest.mark.parametrize("next_worker", [NextWorker(), NextWorker(3)])
def test_the_terms_of_what_is_left_are_those_of_the_objective(
    used: int, next_worker: NextWorker
) -> None:
    """The score of a plan is that of its node after the starts; here `used` GPUs are taken."""
    cls = node_class()
    model = variables(cls, next_worker)
    taken = model.upto(4)
    model.now[0].gpus.append((taken, 1))
    model.cp.add(taken == used)
    Capacity(model)
    model.cp.maximize(total(model.gain) + model.constant)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    left = NodeClass(
        4, 4 - used, (), 4000, 0, 0, (FreeNode("n", (GPU,) * (4 - used) + (0,) * used),)
    )
    expected = score(Instance((left,), (), (), next_worker), RoundPlan()).total
    assert round(solver.objective_value) == expected
