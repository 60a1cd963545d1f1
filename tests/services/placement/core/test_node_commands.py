from __future__ import annotations

import pytest

from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.nodes import CordonNode, DrainNode, UncordonNode
from tests.services.placement.core.lane import Lane, job, kinds, lane


def test_a_command_about_an_unknown_node_or_pool_is_refused() -> None:
    (refused,) = lane("a").command(CordonNode(node_id="b"))
    assert isinstance(refused, CommandRefused) and refused.reason == "unknown_node"
    (refused,) = Lane().command(CordonNode(node_id="b"))
    assert isinstance(refused, CommandRefused) and refused.reason == "unknown_pool"


@pytest.mark.parametrize(("again", "duplicate"), [(CordonNode, True), (UncordonNode, False)])
def test_a_node_that_is_as_asked_for_makes_the_command_a_duplicate(
    again: type[CordonNode] | type[UncordonNode], duplicate: bool
) -> None:
    pool = lane("a")
    pool.command(CordonNode(node_id="a"))
    accepted = [e for e in pool.command(again(node_id="a")) if isinstance(e, CommandAccepted)]
    assert [event.duplicate for event in accepted] == [duplicate]


def test_a_drain_cordons_first_then_moves_the_jobs_and_answers_last() -> None:
    pool = lane("a", "b")
    pool.run(job("j", 4))
    assert kinds(pool.command(DrainNode(node_id="a")))[:3] == [
        "NodeCordoned",
        "JobMigrated",
        "CommandAccepted",
    ]
