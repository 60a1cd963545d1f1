"""A plan of the instance is a complete assignment to the model's decisions, and a feasible one."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.hint import Hint
from services.placement.core.solver.instance import (
    FreeNode,
    GangRequest,
    Instance,
    NodeClass,
    Reservation,
    RoundPlan,
    Start,
    Victim,
    VictimMigration,
    VictimShare,
)
from services.placement.core.solver.model import RoundModel
from services.placement.core.solver.objective import score
from services.placement.core.solver.places import layout

SHARE = GangRequest("s", 1, 1, 500, 0, 0, 1, 1, (0,), (GPU,), 0, 90_000)
GANG = GangRequest("g", 1, 2, GPU, 0, 0, 1, 2, (0, 1), (GPU, GPU), 1, 80_000)
BLOCKED = GangRequest("b", 1, 4, GPU, 0, 0, 1, 1, (1,), (GPU,), 2, 70_000, victims=(0,))
RUNNING = GangRequest("v", 1, 2, GPU, 0, 0, 1, 1, (0,), (GPU,), 0, 0)


def instance() -> Instance:
    """Return a round with a share, a gang, and a job that may stop the one that runs on `b`."""
    first = NodeClass(4, 3, (500,), 0, 0, 0, (FreeNode("a", (GPU, 500, GPU, GPU)),))
    share = VictimShare(0, 2, 0, 0)
    second = NodeClass(4, 2, (), 0, 0, 0, (FreeNode("b", (0, 0, GPU, GPU)),), (share,))
    return Instance((first, second), (SHARE, GANG, BLOCKED), (Victim("v", 1, 50, 10, RUNNING),))


def slots(node: str, *gpus: int, milli: int = GPU) -> Slot:
    return Slot(node, gpus, milli, 0, 0)


PLANS = {
    "nothing": RoundPlan(),
    "a share on a partly used GPU": RoundPlan((Start(0, (slots("a", 1, milli=500),)),)),
    "a share that opens a GPU": RoundPlan((Start(0, (slots("a", 2, milli=500),)),)),
    "a gang on two nodes": RoundPlan((Start(1, (slots("a", 0, 2), slots("b", 2, 3))),)),
    "a stop": RoundPlan((), (Reservation(2, (("b", 1),)),), (0,)),
    "a migration": RoundPlan(
        (Start(0, (slots("a", 1, milli=500),)),),
        (Reservation(2, (("b", 1),)),),
        (0,),
        (VictimMigration(0, (slots("a", 0, 2),)),),
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_hinted_decisions_are_feasible_and_worth_the_score_of_the_plan(plan: RoundPlan) -> None:
    given = instance()
    model = RoundModel(given, layout(given, plan))
    hint = Hint(model)
    hint.give(plan)
    for var, value in hint.values.values():
        model.cp.add(var == value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    assert round(solver.objective_value) == score(given, plan).total


def test_every_decision_has_a_value() -> None:
    given, plan = instance(), PLANS["a migration"]
    model = RoundModel(given, layout(given, plan))
    hint = Hint(model)
    hint.give(plan)
    begins = [gang.begins for gang in [*model.gangs, *model.migrants]]
    assert [hint.values[var.index][1] for var in begins] == [1, 0, 0, 1]
    assert hint.values[model.stops[0].index][1] == 1
    assert hint.values[model.reservations[2].begins.index][1] == 1
