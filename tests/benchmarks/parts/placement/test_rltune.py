"""RLTune's MILP against trying all of its candidates, and its plans against the checker."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest

from benchmarks.parts.placement.rltune import FreeNodes, best_candidates, solve_in_process
from services.placement.core.solver import contended
from services.placement.core.solver.checker import find_violations
from services.placement.core.solver.contended import instance_for_round
from services.placement.core.solver.instance import Instance, RoundPlan, Start
from services.placement.core.solver.objective import class_of, score
from tests.services.placement.core.lane import Lane, job

# Not imported here: OR-tools, which is, has a HiGHS of its own.
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(find_spec("highspy") is None, reason="needs the extra `simulation`"),
]

POOLS = 60


def rltune_cost(instance: Instance, plan: RoundPlan) -> float:
    """Return what RLTune minimises, as whole numbers a hundred times as large."""
    terms = score(instance, plan).terms
    return -(terms["fragmentation"] + terms["balance"] + terms["room"])


def pool(seed: int) -> Instance | None:
    """Return a round on some nodes, with a gang that fits and one that does not."""
    draw = random.Random(seed)
    lane = Lane()
    lane.pool(solver="cpsat")
    for number in range(draw.randint(2, 6)):
        lane.node(f"n{number}", draw.randint(2, 8))
    workers = draw.randint(1, 3)
    lane.submit(
        job("one", gpus=draw.randint(1, 4), workers=workers), job("next", gpus=8, workers=9)
    )
    return instance_for_round(lane.state) if lane.state.open_round else None


def test_each_milp_picks_the_best_of_its_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The MILP of RLTune is an argmin over at most four candidates."""
    monkeypatch.setattr(contended, "most_gain", lambda instance: 1)
    instances = [instance for seed in range(POOLS) if (instance := pool(seed))]
    several = 0
    for instance, placed in zip(instances, solve_in_process(instances), strict=True):
        assert find_violations(instance, placed.plan) == []
        request = instance.requests[0]
        candidates = best_candidates(FreeNodes(instance), request, class_of(instance))
        several += len(candidates) > 1
        plans = [
            RoundPlan((Start(0, FreeNodes(instance).take(request, candidate)),))
            for candidate in candidates
        ]
        least = min(rltune_cost(instance, plan) for plan in plans)
        assert rltune_cost(instance, placed.plan) == least
    assert len(instances) > POOLS // 2 and several > 10
