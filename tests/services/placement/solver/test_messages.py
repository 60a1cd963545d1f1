"""Requests and replies come out of the solver's pipes as they went in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.placement.core.pool.shape import Slot
from services.placement.core.solver.instance import (
    Fixed,
    FreeNode,
    GangRequest,
    Instance,
    NextWorker,
    NodeClass,
    Release,
    Reservation,
    RoundPlan,
    Solution,
    Start,
    Victim,
    VictimMigration,
    VictimShare,
    Wait,
)
from services.placement.solver.messages import (
    SolverReply,
    SolverRequest,
    pack,
    reply_of,
    request_of,
)

SLOT = Slot("n1", (0, 3), 1000, 2000, 4096)
REQUEST = GangRequest("j1", 2, 2, 1000, 2000, 4096, 1, 3, (0,), (950,), 0, 70, victims=(0,))
PATIENT = replace(REQUEST, job_id="j3", victims=(), spread=(800, 400), waits=((0, 700),))
NODES = NodeClass(
    8, 2, (250, 500), 16_000, 65_536, 1, (FreeNode("n1", (1000, 250)),), (VictimShare(0, 1, 2, 3),)
)
PLAN = RoundPlan(
    (Start(0, (SLOT,)),),
    (Reservation(0, (("n1", 2),)),),
    (0,),
    (VictimMigration(0, (SLOT,)),),
    (Wait(1, 0),),
)
INSTANCE = Instance(
    (NODES,),
    (REQUEST, PATIENT),
    (Victim("j0", 1, 40, 30, REQUEST),),
    NextWorker(8, 1, 2),
    5,
    PLAN,
    (Fixed("j2", 1, 0, (SLOT,)),),
    (Release(2, 1_700_000_000_000),),
)


@pytest.mark.parametrize("wall_s", [None, 0.5])
def test_a_request_keeps_instance_and_limits(wall_s: float | None) -> None:
    request = SolverRequest(INSTANCE, 2.5, wall_s)
    assert request_of(pack(request)) == request


def test_a_reply_keeps_its_solution() -> None:
    solution = Solution(PLAN, "optimal", 70, 60, 70, {"value": 70}, exact=False)
    reply = SolverReply(solution, 12.5)
    assert reply_of(pack(reply)) == reply
