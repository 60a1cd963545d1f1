"""RLTune's MILP against trying all of its ways, and its plans against the rules."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest

from benchmarks.parts.rltune import Nodes, elsewhere, ways
from services.placement.core.solver.checker import find_violations
from services.placement.core.solver.contended import instance_for_round, open_round
from services.placement.core.solver.instance import Instance, RoundPlan, Start
from services.placement.core.solver.objective import class_of, score
from tests.services.placement.core.lane import Lane, job

# Not imported here: OR-tools, which is, has a HiGHS of its own.
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(find_spec("highspy") is None, reason="needs the extra `simulation`"),
]

POOLS = 60


def own(instance: Instance, plan: RoundPlan) -> float:
    """What RLTune minimises, as whole numbers a hundred times as large."""
    terms = score(instance, plan).terms
    return -(terms["fragmentation"] + terms["balance"] + terms["room"])


def pool(seed: int) -> Instance | None:
    """Some nodes, partly used, one gang that fits and one that does not."""
    chance = random.Random(seed)
    made = Lane()
    made.pool(solver="cpsat")
    for number in range(chance.randint(2, 6)):
        made.node(f"n{number}", chance.randint(2, 8))
    workers = chance.randint(1, 3)
    made.submit(
        job("one", gpus=chance.randint(1, 4), workers=workers), job("next", gpus=8, workers=9)
    )
    return instance_for_round(made.state) if open_round(made.state) else None


def test_each_milp_is_the_best_of_its_ways() -> None:
    """The card's oracle: the MILP is an argmin over at most four ways."""
    instances = [each for seed in range(POOLS) if (each := pool(seed))]
    several = 0
    for instance, placed in zip(instances, elsewhere(instances), strict=True):
        assert find_violations(instance, placed.plan) == []
        request = instance.requests[0]
        found = ways(Nodes(instance), request, class_of(instance))
        several += len(found) > 1
        plans = [RoundPlan((Start(0, Nodes(instance).take(request, way)),)) for way in found]
        assert own(instance, placed.plan) == min(own(instance, plan) for plan in plans)
    assert len(instances) > POOLS // 2 and several > 10
