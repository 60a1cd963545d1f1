from __future__ import annotations

import pytest

from services.placement.core.pool import fold_nodes
from shared.contracts.nodes import CordonNode, NodeCordoned, UncordonNode
from tests.services.placement.core.lane import Lane, job, lane, left, only, registered


def test_a_cordoned_node_is_off_the_indexes_and_returns_to_them() -> None:
    pool = lane("a")
    pool.command(CordonNode(node_id="a", reason="check"))
    assert not pool.state.board.nodes["a"].indexed and pool.state.board.gpus == 0
    pool.command(UncordonNode(node_id="a"))
    assert pool.state.board.nodes["a"].indexed and pool.state.board.gpus == 8


def test_a_lost_node_stays_known_while_a_job_has_gpus_on_it() -> None:
    pool = lane("a", "b")
    pool.run(job("j", 8))
    pool.report(left("a"))
    pool.report(left("b"))
    assert list(pool.state.board.nodes) == ["a"] == list(pool.state.lost)


def test_settings_leave_out_nodes_of_another_backend() -> None:
    pool = lane("a")
    pool.pool(backends=("process",))
    assert not pool.state.board.nodes["a"].indexed
    pool.pool(backends=("process", "virtual"))
    assert pool.state.board.nodes["a"].indexed


def test_new_capacity_may_change_every_hold_reason() -> None:
    pool = lane("a")
    pool.submit(job("j", 16))
    assert pool.job("j").hold_reason == "no_node_fits"
    pool.state.unreported.clear()
    pool.node("b", 4, gpu_type="h100")
    assert pool.state.unreported == {"j": None}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Lane:
    """A pool of agents that knows two nodes that are gone, and three cordons of others."""
    monkeypatch.setattr(fold_nodes, "GONE_KEPT", 2)
    monkeypatch.setattr(fold_nodes, "CORDONS_KEPT", 3)
    made = Lane()
    made.pool(backends=("agent",))
    return made


def come_and_go(pool: Lane, *names: str, cordoned: bool) -> None:
    for name in names:
        generation = pool.state.generation_floor + 1
        pool.report(registered(name, backend="agent", generation=generation))
        if cordoned:
            pool.command(CordonNode(node_id=name, reason="broken"))
        pool.report(left(name))


def test_a_cordoned_node_that_is_forgotten_stays_cordoned_when_it_returns(few: Lane) -> None:
    come_and_go(few, "broken", cordoned=True)
    come_and_go(few, "a", "b", "c", cordoned=False)
    assert "broken" not in few.state.generations
    generation = few.state.generation_floor + 1
    decided = few.report(registered("broken", backend="agent", generation=generation))
    (again,) = only(NodeCordoned, decided)
    assert isinstance(again, NodeCordoned) and again.reason == "still cordoned"
    assert not few.state.board.nodes["broken"].indexed


def test_cordons_of_nodes_that_never_return_are_bounded(few: Lane) -> None:
    """Of nodes that are known none is ended."""
    few.report(registered("here", backend="agent", generation=1))
    few.command(CordonNode(node_id="here", reason="check"))
    come_and_go(few, *(f"n{number}" for number in range(10)), cordoned=True)
    assert list(few.state.gone) == ["n8", "n9"]
    assert set(few.state.cordons) == {"here", "n5", "n6", "n7", "n8", "n9"}
    few.command(UncordonNode(node_id="n5"))
    assert "n5" not in few.state.cordons
