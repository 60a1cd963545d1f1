from __future__ import annotations

from shared.contracts.nodes import CordonNode, UncordonNode
from tests.services.placement.core.lane import job, lane, left


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
