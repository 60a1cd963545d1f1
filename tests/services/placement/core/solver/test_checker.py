from __future__ import annotations

from dataclasses import replace

import pytest

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.solver.checker import find_violations
from services.placement.core.solver.instance import (
    FreeNode,
    GangRequest,
    Instance,
    NodeClass,
    Release,
    RoundPlan,
    Start,
    Wait,
)


def slot(*gpus: int, node: str = "n") -> Slot:
    return Slot(node, gpus, GPU, 1000, 0)


def instance(must_start: bool = False) -> Instance:
    node = NodeClass(4, 4, (), 3000, 0, 0, (FreeNode("n", (GPU,) * 4),))
    one = GangRequest("a", 1, 2, GPU, 1000, 0, 1, 1, (0,), (GPU,), 0, 8, must_start=must_start)
    other = GangRequest("b", 1, 2, GPU, 1000, 0, 1, 2, (0,), (GPU,), 1, 4)
    return Instance((node,), (one, other))


def test_a_plan_that_keeps_all_rules_has_no_violation() -> None:
    plan = RoundPlan((Start(0, (slot(0, 1),)), Start(1, (slot(2, 3),))))
    assert find_violations(instance(must_start=True), plan) == []
    assert find_violations(instance(), RoundPlan()) == []


def test_a_wait_is_for_a_release_with_room_that_the_job_may_wait_for() -> None:
    whole = instance(must_start=True)
    patient = replace(whole.requests[0], waits=((0, 500),))
    waiting = replace(
        whole,
        requests=(patient, replace(patient, job_id="c", must_start=False)),
        releases=(Release(2, 9),),
    )
    assert find_violations(waiting, RoundPlan(waits=(Wait(0, 0),))) == []
    both = RoundPlan(waits=(Wait(0, 0), Wait(1, 0)))
    assert "release 0 has not so much" in find_violations(waiting, both)
    start = Start(0, (slot(0, 1),))
    assert find_violations(waiting, RoundPlan((start,), waits=(Wait(0, 0),))) != []
    unknown = replace(whole, releases=(Release(2, 9),))
    assert "a may not wait for release 0" in find_violations(
        unknown, RoundPlan(waits=(Wait(0, 0),))
    )


@pytest.mark.parametrize(
    ("starts", "violation"),
    [
        ((Start(0, (slot(0, 1),)), Start(0, (slot(2, 3),))), "request 0 is served twice"),
        ((Start(1, (slot(0, 1),)),), "request 0 is first in the queue and does not start"),
        ((Start(0, (slot(0, 1), slot(2, 3))),), "a has 2 workers"),
        ((Start(0, (slot(0, 1, node="x"),)),), "a may not run on x"),
        ((Start(0, (slot(0, 0),)),), "a requests another worker"),
        ((Start(0, (slot(0, 1),)), Start(1, (slot(1, 2),))), "n has not so much"),
    ],
)
def test_each_broken_rule_is_named(starts: tuple[Start, ...], violation: str) -> None:
    assert violation in find_violations(instance(must_start=True), RoundPlan(starts))


def test_a_victim_stops_only_for_a_reservation() -> None:
    (violation,) = find_violations(instance(), RoundPlan(stops=(0,)))
    assert violation == "victim 0 stops for no job that may stop it"
