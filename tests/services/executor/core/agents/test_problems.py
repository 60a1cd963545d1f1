"""Only changes of the problems of a node are reported, and none to an earlier release."""

from __future__ import annotations

import pytest

from services.executor.core.agents.problems import changed_problems
from services.executor.core.agents.state import AgentPool
from shared.contracts.base import Event
from shared.contracts.node_problems import NodeProblem, NodeProblemNoted
from shared.contracts.nodes import NodeLost
from tests.services.executor.core.agents.history import POOL as BEFORE
from tests.services.executor.core.agents.history import UUID, History, joined

POOL = BEFORE.model_copy(update={"release": 1})
FULL: dict[NodeProblem, str | None] = {"disk_full": "the disk of /var", "cloned_identity": ""}


def noted(problem: NodeProblem, present: bool, incarnation: str = UUID) -> NodeProblemNoted:
    return NodeProblemNoted(
        node_id="n1", incarnation=incarnation, problem=problem, present=present, detail="d"
    )


def folded(*events: Event) -> AgentPool:
    return History(*events).state


def changes(state: AgentPool, present: dict[NodeProblem, str | None]) -> list[tuple[str, bool]]:
    return [(one.problem, one.present) for one in changed_problems(state, "n1", present)]


def test_a_problem_is_reported_until_placement_has_noted_it_and_so_is_its_end() -> None:
    state = folded(POOL, joined("n1"))
    [report] = changed_problems(state, "n1", FULL)
    assert (report.problem, report.present, report.detail) == (
        "disk_full",
        True,
        "the disk of /var",
    )
    assert report.incarnation == UUID
    state = folded(POOL, joined("n1"), noted("disk_full", True))
    assert changes(state, FULL) == []
    assert changes(state, {"disk_full": ""}) == [("disk_full", False)]
    state = folded(POOL, joined("n1"), noted("disk_full", True), noted("disk_full", False))
    assert changes(state, FULL) == [("disk_full", True)]


def test_what_is_not_known_changes_nothing() -> None:
    state = folded(POOL, joined("n1"), noted("cloned_identity", True))
    assert changes(state, {"cloned_identity": None}) == []
    assert changes(state, {"cloned_identity": ""}) == [("cloned_identity", False)]


def test_a_node_that_joins_anew_has_no_problem() -> None:
    state = folded(POOL, joined("n1"), noted("disk_full", True), joined("n1"))
    assert changes(state, FULL) == [("disk_full", True)]
    state = folded(POOL, joined("n1"), noted("disk_full", True, incarnation="f" * 32))
    assert changes(state, FULL) == [("disk_full", True)], "it was that of another incarnation"


@pytest.mark.parametrize(
    "events",
    [
        (POOL,),
        (POOL, joined("n1"), NodeLost(node_id="n1", incarnation=UUID, reason="silent")),
        (BEFORE, joined("n1")),
    ],
    ids=["unknown", "lost", "before the end of the upgrade"],
)
def test_nothing_is_reported_of_a_node_that_is_not_there_or_to_an_earlier_release(
    events: tuple[Event, ...],
) -> None:
    assert changes(folded(*events), FULL) == []
