"""Failed GPUs, and the health of their nodes, are the same after a restart."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.faults import FaultSuspected
from shared.contracts.mitigation import NodeHealthScored
from shared.contracts.node_problems import NodeGpusNoted, NodeProblem, NodeProblemNoted
from tests.harness.decider import AT, an_input, given, run
from tests.services.failslow.core.test_fleet import joined, lost
from tests.services.failslow.gangs import POOL, gang, iterated, watched

FAILSLOW = FailSlow()
RELEASED = POOL.model_copy(update={"release": 1})
XID = "GPU 0 (GPU-a0): Xid 79, it has fallen off the bus"
HALF_LIFE_MS = 7 * 86_400_000


def noted(
    present: bool = True,
    problem: NodeProblem = "gpu_fault",
    incarnation: str = "i",
    gpus: tuple[int, ...] = (),
) -> NodeProblemNoted:
    return NodeProblemNoted(
        node_id="n2",
        incarnation=incarnation,
        problem=problem,
        present=present,
        detail=XID,
        gpus=gpus,
    )


def fed(state: FailSlowState, *events: Event) -> list[Event]:
    return run(FAILSLOW, state, [an_input(event, "placement") for event in events])


def test_a_failed_gpu_is_noted_once_and_lowers_the_health_of_its_node() -> None:
    state = given(FAILSLOW, RELEASED)
    restated, scored = fed(state, noted())
    assert restated == NodeGpusNoted(**noted().model_dump())
    assert isinstance(scored, NodeHealthScored)
    assert (scored.node_id, scored.score, scored.faults) == ("n2", 0.5, 1)
    assert fed(state, noted()) == []


def test_a_restart_knows_the_gpus_and_the_health_from_the_ledger_alone() -> None:
    before = given(FAILSLOW, RELEASED)
    written = fed(before, noted(problem="gpu_slow"), noted())
    after = given(FAILSLOW, RELEASED, *written)
    assert after.gpu_problems == before.gpu_problems
    assert after.mitigation.health == before.mitigation.health
    now_s = (AT + HALF_LIFE_MS) / 1000
    assert after.mitigation.health["n2"].score(now_s) == pytest.approx(1 / (1 + 2 / 3))
    assert fed(after, noted(), noted(problem="gpu_slow")) == []


def test_the_gpus_of_a_problem_have_a_health_of_their_own() -> None:
    state = given(FAILSLOW, RELEASED)
    written = fed(state, noted(gpus=(3,)))
    scored = [event for event in written if isinstance(event, NodeHealthScored)]
    assert [(event.gpu, event.score) for event in scored] == [(None, 0.5), (3, 0.5)]
    again = given(FAILSLOW, RELEASED, *written)
    assert again.mitigation.gpu_health == state.mitigation.gpu_health


def test_a_suspicion_after_a_restart_names_the_failed_gpu_without_a_new_reading() -> None:
    written = fed(given(FAILSLOW, RELEASED), noted())
    state = given(FAILSLOW, RELEASED, watched(gang()), *written)
    well, slow = [1.0] * 3, [1.4] * 3
    events = run(FAILSLOW, state, [iterated(well, well, slow, well)])
    (suspicion,) = [event for event in events if isinstance(event, FaultSuspected)]
    assert f"gpu_fault of n2: {XID}" in suspicion.cause_evidence


def test_a_problem_that_comes_and_goes_counts_once_per_incarnation() -> None:
    state = given(FAILSLOW, RELEASED)
    for _ in range(3):
        fed(state, noted(problem="gpu_slow"), noted(False, "gpu_slow"))
    assert state.mitigation.health["n2"].faults == 1
    fed(state, noted(problem="gpu_slow", incarnation="i2"))
    assert state.mitigation.health["n2"].faults == 2


@pytest.mark.parametrize("change", [joined("n2"), lost("n2")], ids=["joined", "lost"])
def test_a_node_that_joins_or_is_lost_has_no_problems_and_keeps_its_history(change: Event) -> None:
    state = given(FAILSLOW, RELEASED)
    fed(state, joined("n2"), noted())
    over = [event for event in fed(state, change) if isinstance(event, NodeGpusNoted)]
    assert [(event.problem, event.present) for event in over] == [("gpu_fault", False)]
    assert state.gpu_problems.sentences("n2") == ()
    assert state.mitigation.health["n2"].faults == 1


def test_other_problems_and_pools_that_were_not_upgraded_have_none_noted() -> None:
    state = given(FAILSLOW, RELEASED)
    assert fed(state, noted(problem="disk_full"), noted(problem="inventory_differs")) == []
    assert fed(given(FAILSLOW, POOL), noted()) == []
