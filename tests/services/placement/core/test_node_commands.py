from __future__ import annotations

import pytest

from services.placement.core.pool import fold_nodes
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.nodes import CordonNode, DrainNode, UncordonNode
from tests.services.placement.core.lane import Lane, job, kinds, lane, left, registered


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


@pytest.mark.parametrize("known", [1, 0])
def test_a_node_that_is_gone_has_no_cordon_to_lift(
    known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known as gone, or forgotten: a name was never used only if no node is forgotten."""
    monkeypatch.setattr(fold_nodes, "GONE_KEPT", known)
    pool = Lane()
    pool.pool(backends=("agent",))
    (refused,) = pool.command(UncordonNode(node_id="a"), "c0")
    assert isinstance(refused, CommandRefused) and refused.reason == "unknown_node"
    pool.report(registered("a", backend="agent", generation=1))
    pool.command(CordonNode(node_id="a"), "c1")
    pool.report(left("a"))
    pool.command(UncordonNode(node_id="a"), "c2")
    assert not pool.state.cordons and ("a" in pool.state.generations) == bool(known)
    (again,) = pool.command(UncordonNode(node_id="a"), "c3")
    assert isinstance(again, CommandAccepted) and again.duplicate
    (refused,) = pool.command(CordonNode(node_id="a"), "c4")
    assert isinstance(refused, CommandRefused) and refused.reason == "unknown_node"


def test_a_drain_cordons_first_then_moves_the_jobs_and_answers_last() -> None:
    pool = lane("a", "b")
    pool.run(job("j", 4))
    assert kinds(pool.command(DrainNode(node_id="a")))[:3] == [
        "NodeCordoned",
        "JobMigrated",
        "CommandAccepted",
    ]
